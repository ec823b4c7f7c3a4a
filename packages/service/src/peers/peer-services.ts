/**
 * The other services on the same PostgreSQL: a sign-in that ends at one ends at all, and one of
 * them runs the work that may run once. On a file there is one service, which leads and notifies
 * no one.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { messageOf } from '@sandlot/shared/base/errors'
import { newId } from '@sandlot/shared/base/ids'
import type { ServicesStore } from '@sandlot/storage/accounts/services'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import { type Change, type ChangeListener, listenToChanges } from '@sandlot/storage/database/changes'
import { isPostgres } from '@sandlot/storage/database/dialect'
import { z } from 'zod'
import type { Logger } from '../log.ts'
import { type EndedForSockets, type Sockets, endedForSockets } from '../socket/sockets.ts'

interface PeerServicesParts {
  /** The location of the accounts. */
  where: string
  accounts: Pick<AccountsStore, 'services' | 'signIns'>
  sockets: Pick<Sockets, 'endedElsewhere' | 'people'>
  log: Logger
  /** Called with each person who was removed elsewhere, also when that is asked for again. */
  onRemoved: (userId: string) => void
  /** The first administrator was made elsewhere. */
  onSetUp: () => void
  /** Called when this service begins to lead. */
  onLead: () => void
}

/** Milliseconds. */
const CHECK_MS = 1_000
const RETRY_MS = 1_000
/** Tries to notify the others; after them the database has been unreachable for minutes. */
const MOST_TRIES = 300
const LEADER = 'sandlot service schedules'
const SET_UP = 'set_up'

const peerMessage = z.object({ from: z.string(), ended: endedForSockets.optional() })

/** Notifies every running service, from a program that is none. */
export function notifyServices(services: ServicesStore, ended: EndedForSockets): Promise<void> {
  return services.publish(
    ended.what,
    JSON.stringify({ from: 'operator', ended } satisfies z.input<typeof peerMessage>),
  )
}

export class PeerServices {
  readonly #parts: PeerServicesParts
  /** The id of this service while it runs. */
  readonly id = newId('r')
  readonly #ended = new AbortController()
  #listener: ChangeListener | undefined
  #timer: NodeJS.Timeout | undefined
  readonly #messages = new SerialQueue()
  #led = false

  constructor(parts: PeerServicesParts) {
    this.#parts = parts
  }

  /** True if there may be others. */
  get isShared(): boolean {
    return isPostgres(this.#parts.where)
  }

  /** Throws where the database cannot be reached. */
  async start(): Promise<void> {
    const { where, log } = this.#parts
    this.#listener = await listenToChanges({
      where,
      schema: 'accounts',
      leader: LEADER,
      changed: (changes) => this.#heard(changes),
      problem: (error) =>
        log.warn({ error: messageOf(error) }, 'messages of other services cannot be received; retrying'),
    })
    const check = (): void => {
      const leads = this.leads()
      if (leads && !this.#led) this.#parts.onLead()
      this.#led = leads
    }
    this.#timer = setInterval(check, CHECK_MS).unref()
    check()
  }

  /** True if this service runs the work that may run once. False before `start`. */
  leads(): boolean {
    return this.#listener?.leads() ?? false
  }

  notify(ended: EndedForSockets): void {
    this.#notify(ended.what, { from: this.id, ended })
  }

  notifySetUp(): void {
    this.#notify(SET_UP, { from: this.id })
  }

  /** Resolves when all notifications are sent. */
  async close(): Promise<void> {
    this.#ended.abort()
    clearInterval(this.#timer)
    await this.#messages.idle()
    await this.#listener?.close()
  }

  /** In order; tried again while the database cannot be reached. */
  #notify(what: string, message: z.input<typeof peerMessage>): void {
    if (!this.isShared) return
    const { accounts, log } = this.#parts
    void this.#messages.run(async () => {
      for (let tries = 1; ; tries++) {
        try {
          return await accounts.services.publish(what, JSON.stringify(message))
        } catch (error) {
          log.warn({ what, error: messageOf(error) }, 'other services could not be notified')
          if (this.#ended.signal.aborted || tries >= MOST_TRIES) return
          await Promise.allSettled([sleep(RETRY_MS, undefined, { signal: this.#ended.signal })])
        }
      }
    })
  }

  async #heard(changes: readonly Change[]): Promise<void> {
    const { sockets, onSetUp } = this.#parts
    for (const { what, id } of changes) {
      if (what === 'everything') {
        // Some were missed: every socket begins again, by what holds now.
        for (const { id: userId } of sockets.people())
          sockets.endedElsewhere({ what: 'person_changed', userId })
        continue
      }
      const { data } = peerMessage.safeParse(id === undefined ? undefined : JSON.parse(id))
      if (data === undefined || data.from === this.id) continue
      if (what === SET_UP) onSetUp()
      if (data.ended !== undefined) await this.#end(data.ended)
    }
  }

  async #end(ended: EndedForSockets): Promise<void> {
    const { accounts, sockets, onRemoved } = this.#parts
    // Notified a moment ago: a sign-in that began since then stays.
    const left =
      ended.what === 'sign_ins_ended'
        ? new Set((await accounts.signIns.list(ended.userId)).map(({ id }) => id))
        : undefined
    sockets.endedElsewhere(ended, left)
    if (ended.what === 'person_removed') onRemoved(ended.userId)
  }
}
