/**
 * The e-mail address of each user id. The service sends it with every request; it is persisted, so
 * that settings which name an address apply to prompts that are resumed after a restart, before any
 * request.
 */
import { messageOf } from '@sandlot/shared/errors'
import type { PeopleRows } from '@sandlot/storage/sessions/people'
import type { Log } from '../log.ts'

export class People {
  readonly #known: Map<string, string>
  readonly #rows: PeopleRows
  readonly #log: Log
  #kept: Promise<void> = Promise.resolve()

  static async open(rows: PeopleRows, log: Log): Promise<People> {
    return new People(rows, await rows.all(), log)
  }

  private constructor(rows: PeopleRows, known: ReadonlyMap<string, string>, log: Log) {
    this.#rows = rows
    this.#known = new Map(known)
    this.#log = log
  }

  /** In lower case, as sign-in compares addresses. Undefined when unknown. */
  emailOf(userId: string): string | undefined {
    return this.#known.get(userId)
  }

  /** Addresses by user id. */
  get all(): ReadonlyMap<string, string> {
    return this.#known
  }

  /** Records a signed-in user's address, effective at once. Returns true when it is new. */
  recordEmail({ id, email }: { id: string; email?: string | undefined }): boolean {
    const said = email?.toLowerCase()
    if (said === undefined || this.#known.get(id) === said) return false
    this.#known.set(id, said)
    this.#kept = this.#kept
      .then(() => this.#rows.put(id, said))
      .catch((error: unknown) => {
        this.#log.warn({ userId: id, error: messageOf(error) }, 'an e-mail address could not be stored')
      })
    return true
  }

  /** Forgets a user's address. */
  forget(userId: string): void {
    this.#known.delete(userId)
  }

  /** Resolves when all addresses are persisted, or have failed to be. Never rejects. */
  settled(): Promise<void> {
    return this.#kept
  }
}
