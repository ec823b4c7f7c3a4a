/**
 * Requests and streams of each user, all sign-ins, keys and sockets together, so that one user
 * cannot slow the others down. Beyond a user's share a request waits for up to a second and is then
 * refused; a stream that has begun is slowed down. Kept in memory, as `limits.ts` says.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { ClientFrame } from '@sandlot/shared/chat/frames'
import { tooMany } from './limits.ts'
import { Pace } from './pace.ts'

const REQUESTS = { everyMs: 1_000 / 50, burst: 200 }
/** Refusals take work too: beyond as many, each comes later. */
const REFUSALS = REQUESTS
const MIB = 1024 * 1024
const BYTES_PER_SECOND = 20 * MIB
/** A small burst: whatever is in it comes at once, and the others wait for that. */
const BYTES = { everyMs: 1_000 / BYTES_PER_SECOND, burst: 4 * MIB }
const LONGEST_MS = 1_000
/** At the longest wait of the user's other requests, 50 of these do not wait at all. */
const FIRST_AHEAD_MS = 2 * LONGEST_MS

/** `first`: passes the user's own requests that wait. `stream`: also waits for their bytes. */
type Kind = 'first' | 'usual' | 'stream'

export interface Clock {
  now: () => number
  sleep: (ms: number) => Promise<unknown>
}

const REAL: Clock = {
  now: () => performance.now(),
  sleep: (ms) => delay(ms),
}

export class UserTraffic {
  readonly #requests: Pace
  readonly #bytes: Pace
  readonly #refusals: Pace
  readonly #sleep: Clock['sleep']

  constructor({ now, sleep }: Clock = REAL) {
    this.#requests = new Pace({ ...REQUESTS, now })
    this.#bytes = new Pace({ ...BYTES, now })
    this.#refusals = new Pace({ ...REFUSALS, now })
    this.#sleep = sleep
  }

  /** Resolves when the request may be answered. Throws `rate_limited`. */
  async request(userId: string, kind: Kind): Promise<void> {
    const longestMs = LONGEST_MS
    const aheadMs = kind === 'first' ? FIRST_AHEAD_MS : 0
    const forBytes = kind === 'stream' ? this.#bytes.reserve(userId, { cost: 0, longestMs }) : { waitMs: 0 }
    if ('refused' in forBytes) return this.#refuse(userId, forBytes.retryMs)
    const forTurn = this.#requests.reserve(userId, { longestMs, aheadMs })
    if ('refused' in forTurn) return this.#refuse(userId, forTurn.retryMs)
    await this.#pause(Math.max(forBytes.waitMs, forTurn.waitMs))
  }

  /** Milliseconds after which more bytes of this user's streams may follow these. */
  take(userId: string, bytes: number): number {
    return this.#bytes.take(userId, bytes)
  }

  /** Resolves when bytes may follow these. */
  async pass(userId: string, bytes: number): Promise<void> {
    await this.#pause(this.take(userId, bytes))
  }

  /**
   * The same bytes, at the pace of this user. A reader that leaves ends `source` at once, also
   * while it is silent.
   */
  paced(userId: string, source: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = source.getReader()
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const { done, value } = await reader.read()
          if (done) return controller.close()
          await this.pass(userId, value.length)
          controller.enqueue(value)
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    )
  }

  async #refuse(userId: string, retryMs: number): Promise<never> {
    await this.#pause(Math.min(this.#refusals.take(userId), LONGEST_MS))
    throw tooMany('Too many requests of yours at once', retryMs)
  }

  async #pause(ms: number): Promise<void> {
    if (ms > 0) await this.#sleep(ms)
  }
}

/** The first load of the page, answers to approvals, and Stop. */
const FIRST = [
  /^GET \/api\/(me|sessions|projects|approvals)$/,
  /^(GET|POST) \/api\/sessions\/[^/]+\/approvals(\/|$)/,
  /^POST \/api\/(sessions\/[^/]+\/cancel|sandbox\/stop|sign-out)$/,
]
const STREAM =
  /^\/api\/(files\/(content|preview|zip)|exec|export|images|terminals\/[^/]+|(sessions|snapshots)\/[^/]+\/(outputs|export|images).*)(\/|$)/

export function kindOfRequest(method: string, path: string): Kind {
  if (FIRST.some((pattern) => pattern.test(`${method} ${path}`))) return 'first'
  return STREAM.test(path) ? 'stream' : 'usual'
}

/** Reading again is what costs; the rest a person does by hand. Undefined: it was no frame. */
export function kindOfFrame(type: ClientFrame['type'] | undefined): Kind {
  return type === undefined || type === 'ai_chat_resume' || type === 'ai_chat_watch' ? 'usual' : 'first'
}
