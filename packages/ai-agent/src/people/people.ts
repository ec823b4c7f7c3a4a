/**
 * Who is who: the e-mail address under which sign-in knows a user id. The service says it with every request; it is kept, so
 * that settings which name an address hold for prompts that a restart takes up again, before anybody has asked for anything.
 */
import { messageOf } from '@sandlot/shared/errors'
import type { PeopleRows } from '@sandlot/storage/sessions/people'
import type { ToolLog } from '../tools/tool.ts'

export class People {
  readonly #known: Map<string, string>
  readonly #rows: PeopleRows
  readonly #log: ToolLog
  #kept: Promise<void> = Promise.resolve()

  static async open(rows: PeopleRows, log: ToolLog): Promise<People> {
    return new People(rows, await rows.all(), log)
  }

  private constructor(rows: PeopleRows, known: ReadonlyMap<string, string>, log: ToolLog) {
    this.#rows = rows
    this.#known = new Map(known)
    this.#log = log
  }

  /** In small letters, as sign-in compares them. Undefined when nobody has said it. */
  emailOf(userId: string): string | undefined {
    return this.#known.get(userId)
  }

  /** Addresses by user id. */
  get all(): ReadonlyMap<string, string> {
    return this.#known
  }

  /** Somebody who was let in. Holds at once. True when the address is news. */
  recordEmail({ id, email }: { id: string; email?: string | undefined }): boolean {
    const said = email?.toLowerCase()
    if (said === undefined || this.#known.get(id) === said) return false
    this.#known.set(id, said)
    this.#kept = this.#kept
      .then(() => this.#rows.put(id, said))
      .catch((error: unknown) => {
        this.#log.warn({ userId: id, error: messageOf(error) }, 'an e-mail address could not be kept')
      })
    return true
  }

  /** Nobody is named by their address any more. */
  forget(userId: string): void {
    this.#known.delete(userId)
  }

  /** Resolves when everything that was said is kept, or cannot be. Never rejects. */
  settled(): Promise<void> {
    return this.#kept
  }
}
