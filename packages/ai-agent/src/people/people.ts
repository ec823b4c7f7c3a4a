/**
 * People by id: their address, role and teams. The service sends them with every request; they are
 * persisted, so that administrators' settings apply to prompts that are resumed after a restart,
 * before any request.
 */
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { messageOf } from '@sandlot/shared/base/errors'
import type { Role } from '@sandlot/shared/account/role'
import type { KnownPerson, PeopleRows } from '@sandlot/storage/people/people'
import type { Log } from '../log.ts'

/** Facts about a person from a request or the service. Absent: unchanged. */
interface SaidPerson {
  id: string
  email?: string | undefined
  role?: Role | undefined
  /** Ids. */
  teams?: readonly string[] | undefined
}

export class People {
  readonly #known: Map<string, KnownPerson>
  readonly #rows: PeopleRows
  readonly #log: Log
  readonly #writes = new SerialQueue()

  static async open(rows: PeopleRows, log: Log): Promise<People> {
    return new People(rows, await rows.all(), log)
  }

  private constructor(rows: PeopleRows, known: ReadonlyMap<string, KnownPerson>, log: Log) {
    this.#rows = rows
    this.#known = new Map(known)
    this.#log = log
  }

  /** The same object as long as nothing changes. Undefined when unknown. */
  get(userId: string): KnownPerson | undefined {
    return this.#known.get(userId)
  }

  /** In lower case, as sign-in compares addresses. Undefined when unknown. */
  emailOf(userId: string): string | undefined {
    return this.#known.get(userId)?.email
  }

  /** By user id. */
  get all(): ReadonlyMap<string, KnownPerson> {
    return this.#known
  }

  /** Records what is said of a person, effective at once. Returns true when it is new. */
  record({ id, ...said }: SaidPerson): boolean {
    const before = this.#known.get(id)
    if (before === undefined && said.email === undefined && said.teams === undefined) return false
    const person: KnownPerson = {
      email: said.email?.toLowerCase() ?? before?.email,
      role: said.role ?? before?.role,
      teams: said.teams?.toSorted() ?? before?.teams ?? [],
    }
    if (before !== undefined && isSame(before, person)) return false
    this.#known.set(id, person)
    this.#writes
      .run(() => this.#rows.put(id, person))
      .catch((error: unknown) => {
        this.#log.warn({ userId: id, error: messageOf(error) }, 'the record of a user was not stored')
      })
    return true
  }

  /**
   * Reloads rows that another process may have changed: of this person, or of everybody. Rows
   * recorded here in between stay. Never rejects.
   */
  reload(userId?: string): Promise<void> {
    return this.#writes
      .run(async () => {
        const before = new Map(this.#known)
        const rows = userId === undefined ? await this.#rows.all() : undefined
        const ids = rows === undefined ? [userId ?? ''] : new Set([...before.keys(), ...rows.keys()])
        for (const id of ids) {
          const person = rows === undefined ? await this.#rows.get(id) : rows.get(id)
          const now = this.#known.get(id)
          if (now !== before.get(id)) continue
          if (person === undefined) this.#known.delete(id)
          else if (now === undefined || !isSame(now, person)) this.#known.set(id, person)
        }
      })
      .catch((error: unknown) => {
        this.#log.warn({ userId, error: messageOf(error) }, 'the records of users could not be reloaded')
      })
  }

  /** Forgets a user. */
  forget(userId: string): void {
    this.#known.delete(userId)
  }

  /** Resolves when everything is persisted, or has failed to be. Never rejects. */
  settled(): Promise<void> {
    return this.#writes.idle()
  }
}

function isSame(a: KnownPerson, b: KnownPerson): boolean {
  return (
    a.email === b.email &&
    a.role === b.role &&
    a.teams.length === b.teams.length &&
    a.teams.every((team, at) => team === b.teams[at])
  )
}
