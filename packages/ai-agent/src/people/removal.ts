/**
 * Removing people, as far as the agent goes. First the removal is stored, so
 * nothing of theirs begins or is taken up any more, whatever is still on its way or a restart
 * finds; then everything ends. The caller repeats it until it succeeds.
 */
import { createKeyedLock } from '@sandlot/shared/async/keyed-lock'
import type { RemovedData } from '@sandlot/shared/account/api'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { type NewAudit, SANDLOT } from '@sandlot/shared/admin/audit'
import type { PeopleRows } from '@sandlot/storage/people/people'

interface RemovalParts {
  rows: Pick<PeopleRows, 'remove' | 'purge'>
  /** Their prompts, and with `purge` their sessions; how many were deleted. */
  endSessions: (userId: string, data: RemovedData) => Promise<number>
  audit: (line: NewAudit) => void
  /** Their MCP servers, and with `purge` what those keep at home. */
  endServers: (userId: string, data: RemovedData) => Promise<void>
  /** Their container, and with `purge` their volume. */
  removeSandbox: (userId: string, data: RemovedData) => Promise<void>
  /** Epoch milliseconds. */
  now: () => number
}

export class Removals {
  readonly #removed: Set<string>
  readonly #ofOne = createKeyedLock()

  /** `removed`: by earlier processes too. */
  constructor(removed: ReadonlySet<string>) {
    this.#removed = new Set(removed)
  }

  has(userId: string): boolean {
    return this.#removed.has(userId)
  }

  /** Another process has stored the removal of this person. */
  add(userId: string): void {
    this.#removed.add(userId)
  }

  /**
   * Idempotent; of one person one after another, and different people's run concurrently. Rejects
   * when something is left to do, for example while the engine is away: with a `SandlotError` that
   * says what, for administrators.
   */
  remove(userId: string, data: RemovedData, parts: RemovalParts): Promise<void> {
    return this.#ofOne.run(userId, async () => {
      const { rows, audit, endSessions, endServers, removeSandbox, now } = parts
      // A line for each chat would be hundreds of one act.
      const end = async (): Promise<void> => {
        const count = await endSessions(userId, data)
        const after = { with: 'the removed person' }
        if (count > 0) audit({ who: SANDLOT, what: 'chat_deleted', whom: { id: userId }, after, count })
      }
      const sessions = data === 'keep' ? 'What they run' : 'What they run, and their chats,'
      await step('That they are removed could not be stored', () => rows.remove(userId, now()))
      this.#removed.add(userId)
      await step(`${sessions} could not be ended`, end)
      await step('Their MCP servers could not be ended', () => endServers(userId, data))
      await step('Their sandbox could not be removed', () => removeSandbox(userId, data))
      // Events under way when it began may have been stored since.
      await step(`${sessions} could not be ended`, end)
      await step('Their secrets and settings could not be deleted', () => rows.remove(userId, now()))
      if (data === 'purge') await step('What they used up could not be deleted', () => rows.purge(userId))
    })
  }
}

async function step(otherwise: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    throw new SandlotError('not_ready', `${otherwise}: ${messageOf(error)}`, { cause: error })
  }
}
