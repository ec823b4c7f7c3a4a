/**
 * Removing people, as far as the agent goes. First it is stored that somebody is removed, so nothing of theirs begins or is taken up
 * any more, whatever is still on its way or a restart finds; then everything ends. Whoever asks repeats it until it succeeds.
 */
import type { RemovedData } from '@sandlot/shared/api'
import type { PeopleRows } from '@sandlot/storage/sessions/people'
import { SerialQueue } from '../serial-queue.ts'

export interface RemovalParts {
  rows: Pick<PeopleRows, 'remove'>
  /** Their prompts, and with `purge` their sessions. */
  endSessions: (userId: string, data: RemovedData) => Promise<void>
  /** Their MCP servers, and with `purge` what those keep at home. */
  endServers: (userId: string, data: RemovedData) => Promise<void>
  /** Their container, and with `purge` their volume. */
  removeSandbox: (userId: string, data: RemovedData) => Promise<void>
  /** Epoch milliseconds. */
  now: () => number
}

export class Removals {
  readonly #removed: Set<string>
  readonly #queue = new SerialQueue()

  /** `removed`: by earlier processes too. */
  constructor(removed: ReadonlySet<string>) {
    this.#removed = new Set(removed)
  }

  has(userId: string): boolean {
    return this.#removed.has(userId)
  }

  /** Idempotent, one after another. Rejects when something is left to do, for example while the engine is away. */
  remove(userId: string, data: RemovedData, parts: RemovalParts): Promise<void> {
    return this.#queue.run(async () => {
      const { rows, endSessions, endServers, removeSandbox, now } = parts
      await rows.remove(userId, now())
      this.#removed.add(userId)
      await endSessions(userId, data)
      await endServers(userId, data)
      await removeSandbox(userId, data)
      // What was on its way when it began may have been stored since.
      await endSessions(userId, data)
      await rows.remove(userId, now())
    })
  }
}
