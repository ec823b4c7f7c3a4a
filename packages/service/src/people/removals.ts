/**
 * Removes a person, from their account to what other parts keep. The account ends at once, in a
 * transaction that also records what is left. The rest runs when the agent is reachable,
 * concurrently for several people, and is retried until it succeeds, also after a restart. The
 * reason of a failure is recorded for administrators.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '@sandlot/shared/async/backoff'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import { EXT } from '@sandlot/shared/acp/meta'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Removal, RemovedData } from '@sandlot/shared/account/api'
import { messageOf } from '@sandlot/shared/base/errors'
import type { RemovalRows, UserRows } from '@sandlot/storage/accounts/store'
import type { Agents } from '../agent/agents.ts'
import type { Logger } from '../log.ts'
import type { Sockets } from '../socket/sockets.ts'
import type { Uploads } from '../chat/uploads.ts'

/** Removals that run at the same time. */
const MOST_AT_ONCE = 4
/** A longer removal gives up its place, and administrators see that. Milliseconds. */
const SLOW_MS = 60_000
/** Pause before a retry, in milliseconds: after the first failure, and at most. */
const RETRY_MS = 15_000
const LONGEST_RETRY_MS = 600_000

const SLOW = 'The agent has not answered for more than a minute; it may hang.'

interface RemovalsParts {
  accounts: { users: Pick<UserRows, 'remove'>; removals: RemovalRows }
  agent: Pick<Agents, 'request' | 'whenConnected'>
  sockets: Pick<Sockets, 'personRemoved'>
  uploads: Pick<Uploads, 'removeAll'>
  log: Logger
  /** True if this service does it, and not another one. */
  leads: () => boolean
  /** Delays of tests, in milliseconds. */
  retryMs?: number | undefined
  slowMs?: number | undefined
}

export class Removals {
  readonly #parts: RemovalsParts
  readonly #ended = new AbortController()
  readonly #running: Promise<void>
  /** By person: the try that is under way, with the pause behind it when it failed. */
  readonly #tries = new Map<string, Promise<void>>()
  /** By person: ends that pause. */
  readonly #pauses = new Map<string, () => void>()
  /** People asked for since their last try began: what that comes to is no reason to pause. */
  readonly #again = new Set<string>()
  /** By person: tries that failed since the last that did not. */
  readonly #failures = new Map<string, number>()
  /** Tries that occupy a place. */
  #busy = 0
  #more = Promise.withResolvers<void>()

  /** Continues at once with what an earlier process has left. */
  constructor(parts: RemovalsParts) {
    this.#parts = parts
    this.#running = this.#keepFinishing()
  }

  /**
   * Resolves when the account has ended; the rest continues. Called again for a removal that has
   * failed, or is failing, it retries at once. Throws what `UserRows.remove` throws.
   */
  async remove(userId: string, data: RemovedData, audit?: NewAudit): Promise<Removal> {
    const removal = await this.#parts.accounts.users.remove(userId, data, audit)
    this.#parts.sockets.personRemoved(userId)
    if (!removal.done) this.askedFor(userId)
    return removal
  }

  /** There is a removal to begin or to try again at once: asked for at another service. */
  askedFor(userId: string): void {
    this.#again.add(userId)
    this.#pauses.get(userId)?.()
    this.#more.resolve()
  }

  /** There may be some to begin. */
  check(): void {
    this.#more.resolve()
  }

  /** Resolves when nothing is under way; what is left, the next process does. */
  async close(): Promise<void> {
    this.#ended.abort()
    await this.#running
    await Promise.all(this.#tries.values())
  }

  async #keepFinishing(): Promise<void> {
    const { signal } = this.#ended
    const { agent, retryMs = RETRY_MS } = this.#parts
    while (!signal.aborted) {
      // Before the look: what is asked for after it wakes us.
      this.#more = Promise.withResolvers()
      // It rejects only after `close`.
      const reached = agent.whenConnected(signal).catch(() => undefined)
      if (await isAborted(reached, signal)) return
      const left = await this.#left()
      if (this.#parts.leads()) for (const removal of left ?? []) this.#begin(removal)
      const wake = this.#more
      const late = left === undefined ? setTimeout(() => wake.resolve(), retryMs) : undefined
      await isAborted(wake.promise, signal)
      clearTimeout(late)
    }
  }

  /** Removals that are not done; undefined when they cannot be read. Never rejects. */
  async #left(): Promise<Removal[] | undefined> {
    const { accounts, log } = this.#parts
    try {
      return (await accounts.removals.list()).filter(({ done }) => !done)
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'pending removals could not be read; retrying')
      return undefined
    }
  }

  /** Unless it is running or has to wait for a place, which wakes us when it becomes free. */
  #begin(removal: Removal): void {
    const { id } = removal
    if (this.#tries.has(id) || this.#busy >= MOST_AT_ONCE) return
    this.#again.delete(id)
    const tried = this.#try(removal).finally(() => {
      this.#tries.delete(id)
      this.#more.resolve()
    })
    this.#tries.set(id, tried)
  }

  /** Once, with a pause behind it when it fails. Never rejects. */
  async #try(removal: Removal): Promise<void> {
    const { id: user, data } = removal
    const { log, slowMs = SLOW_MS } = this.#parts
    const { signal } = this.#ended
    const leavePlace = this.#takePlace()
    let recorded: Promise<void> | undefined
    const slow = setTimeout(() => {
      leavePlace()
      recorded = this.#recordProblem(removal, SLOW)
    }, slowMs)
    const problem = await this.#finish(removal).then(() => undefined, messageOf)
    // Before the pause: that is not the agent's time.
    clearTimeout(slow)
    await recorded
    leavePlace()
    if (signal.aborted) return
    if (problem === undefined) {
      this.#failures.delete(user)
      log.info({ user, data }, 'a person was removed')
      return
    }
    await this.#recordProblem(removal, problem)
    await this.#pause(user)
  }

  async #finish({ id, data }: Removal): Promise<void> {
    const { accounts, agent, sockets, uploads } = this.#parts
    const { signal } = this.#ended
    if (await isAborted(agent.request(EXT.removePerson, { userId: id, data }), signal)) return
    // A socket that was being accepted when the account ended.
    sockets.personRemoved(id)
    await uploads.removeAll(id)
    await accounts.removals.done({ id, data })
  }

  /** Records the reason for administrators. Never rejects. */
  async #recordProblem({ id: user, data }: Removal, problem: string): Promise<void> {
    const { accounts, log } = this.#parts
    log.warn({ user, data, error: problem }, 'a person is not completely removed yet; retrying')
    try {
      await accounts.removals.failed({ id: user, data }, problem)
    } catch (error) {
      log.warn({ user, error: messageOf(error) }, 'the reason of an incomplete removal could not be stored')
    }
  }

  /** Twice as long each time, until it is asked for again. */
  async #pause(userId: string): Promise<void> {
    const { retryMs = RETRY_MS } = this.#parts
    const failures = this.#failures.get(userId) ?? 0
    this.#failures.set(userId, failures + 1)
    if (this.#again.has(userId)) return
    const over = new AbortController()
    this.#pauses.set(userId, () => over.abort())
    const signal = AbortSignal.any([this.#ended.signal, over.signal])
    const ms = backoffMs(failures + 1, { firstMs: retryMs, longestMs: LONGEST_RETRY_MS })
    await isAborted(sleep(ms, undefined, { ref: false }), signal)
    this.#pauses.delete(userId)
  }

  /** Returns the outcome. Idempotent. */
  #takePlace(): () => void {
    this.#busy += 1
    let taken = true
    return () => {
      if (!taken) return
      taken = false
      this.#busy -= 1
      this.#more.resolve()
    }
  }
}

/**
 * Resolves with whether the signal aborted before `work` was done; what `work` comes to then is
 * ignored.
 */
async function isAborted(work: Promise<unknown>, signal: AbortSignal): Promise<boolean> {
  try {
    await orAborted(work, signal)
    return false
  } catch (error) {
    if (signal.aborted) return true
    throw error
  }
}
