/**
 * Removing a person, from the end of their account to the last of what is elsewhere. The account ends at once, in one transaction
 * that also writes down what is left; that is then done whenever the agent can be reached, again and again until it succeeds, also
 * after a restart.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { EXT } from '@sandlot/shared/acp-meta'
import type { Removal, RemovedData } from '@sandlot/shared/api'
import { messageOf } from '@sandlot/shared/errors'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import type { AgentLink } from './agent/agent-link.ts'
import type { Logger } from './log.ts'
import type { Sockets } from './socket/sockets.ts'
import type { Uploads } from './uploads.ts'

/** Before the next try of what has failed, in milliseconds. */
const RETRY_MS = 15_000

export interface RemovalsParts {
  accounts: Pick<AccountsStore, 'removeUser' | 'removals' | 'removalDone'>
  agent: Pick<AgentLink, 'request' | 'whenConnected'>
  sockets: Pick<Sockets, 'personRemoved'>
  uploads: Pick<Uploads, 'removeAll'>
  log: Logger
  retryMs?: number | undefined
}

export class Removals {
  readonly #parts: RemovalsParts
  readonly #ended = new AbortController()
  readonly #running: Promise<void>
  #more = Promise.withResolvers<void>()

  /** Goes on at once with what an earlier process has left. */
  constructor(parts: RemovalsParts) {
    this.#parts = parts
    this.#running = this.#keepFinishing()
  }

  /** Resolves when the account has ended; the rest goes on. Throws what `AccountsStore.removeUser` throws. */
  async remove(userId: string, data: RemovedData): Promise<Removal> {
    const removal = await this.#parts.accounts.removeUser(userId, data)
    this.#parts.sockets.personRemoved(userId)
    this.#more.resolve()
    return removal
  }

  /** Resolves when nothing is under way; what is left, the next process does. */
  async close(): Promise<void> {
    this.#ended.abort()
    await this.#running
  }

  async #keepFinishing(): Promise<void> {
    const { signal } = this.#ended
    const { agent, retryMs = RETRY_MS } = this.#parts
    while (!signal.aborted) {
      // Before the look: what is asked for after it wakes us.
      this.#more = Promise.withResolvers()
      const left = await this.#left()
      if (left?.length === 0) {
        await orAborted(this.#more.promise, signal)
        continue
      }
      // It rejects only when nobody waits any more.
      const reached = agent.whenConnected(signal).catch(() => undefined)
      if ((await orAborted(reached, signal)) === 'aborted') return
      if (left === undefined || !(await this.#finishAll()))
        await orAborted(sleep(retryMs, undefined, { ref: false }), signal)
    }
  }

  /** What is not done yet; undefined when that could not be read. Never rejects: nobody would hear of it. */
  async #left(): Promise<Removal[] | undefined> {
    const { accounts, log } = this.#parts
    try {
      return (await accounts.removals()).filter(({ done }) => !done)
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'it could not be read who is to be removed; it is tried again')
      return undefined
    }
  }

  /** False when something is left. */
  async #finishAll(): Promise<boolean> {
    const { log } = this.#parts
    const left = await this.#left()
    let all = left !== undefined
    for (const removal of left ?? []) {
      const { id: user, data } = removal
      try {
        if ((await orAborted(this.#finish(removal), this.#ended.signal)) === 'aborted') return false
        log.info({ user, data }, 'a person was removed')
      } catch (error) {
        all = false
        log.warn(
          { user, data, error: messageOf(error) },
          'a person is not removed whole yet; it is tried again',
        )
      }
    }
    return all
  }

  async #finish({ id, data }: Removal): Promise<void> {
    const { accounts, agent, sockets, uploads } = this.#parts
    await agent.request(EXT.removePerson, { userId: id, data })
    if (this.#ended.signal.aborted) return
    // Whoever was just being let in when the account ended.
    sockets.personRemoved(id)
    await uploads.removeAll(id)
    await accounts.removalDone({ id, data })
  }
}

/** Wait for `work`, but not beyond the abort; what it comes to then is nobody's concern. */
async function orAborted(work: Promise<unknown>, signal: AbortSignal): Promise<'done' | 'aborted'> {
  const aborted = Promise.withResolvers<'aborted'>()
  const onAbort = (): void => aborted.resolve('aborted')
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([aborted.promise, work.then(() => 'done' as const)])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
