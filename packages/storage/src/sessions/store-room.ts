/**
 * Whether there is room for what chats may do without: outputs, images, copies. Texts and events
 * are stored in any case, so a person who has used up their budget can still write, and delete.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import { type Kysely, sql } from 'kysely'
import type { SessionsSchema } from '../tables/sessions.ts'
import type { NoRoom } from '../tables/records.ts'

/** For what is refused where there is no room. */
export function noRoomError(why: NoRoom, what: string): SandlotError {
  return new SandlotError('store_full', `${what} cannot be stored: ${NO_ROOM_TEXTS[why]}`)
}

export const NO_ROOM_TEXTS: Record<NoRoom, string> = {
  budget: 'your chats have used up their storage (SANDLOT_STORE_MB). Delete chats to make room.',
  disk: 'the disk of the server is nearly full. Its administrator must make room.',
}

export interface RoomLimits {
  /** Of one user's sessions. */
  userBytes: number
  /** Free space where the database is. */
  freeBytes: () => number
}

/** Of the disk, for events and for what else the process writes. */
export const RESERVE_BYTES = 64 * 1024 * 1024
/** How old a user's sum may be. What is stored meanwhile is added to it. */
const SUM_MS = 1_000

export class StoreRoom {
  readonly #db: Kysely<SessionsSchema>
  readonly #limits: RoomLimits | undefined
  readonly #sums = new Map<string, { bytes: number; at: number }>()

  /** Without limits there is always room. */
  constructor(db: Kysely<SessionsSchema>, limits: RoomLimits | undefined) {
    this.#db = db
    this.#limits = limits
  }

  /**
   * Why `bytes` more of this user cannot be stored; undefined: they can. `db`: a transaction that
   * is under way.
   */
  async missing(userId: string, bytes: number, db = this.#db): Promise<NoRoom | undefined> {
    if (this.#limits === undefined) return undefined
    const { userBytes, freeBytes } = this.#limits
    // Once into the log of the database, and once into its file.
    if (freeBytes() - 2 * bytes < RESERVE_BYTES) return 'disk'
    return (await this.#sum(userId, db)) + bytes > userBytes ? 'budget' : undefined
  }

  /** Counts what was just stored, until the sum is made again. */
  stored(userId: string, bytes: number): void {
    const sum = this.#sums.get(userId)
    if (sum !== undefined) sum.bytes += bytes
  }

  /** Something of this user was deleted or copied. */
  changed(userId: string): void {
    this.#sums.delete(userId)
  }

  /** One row for each session: a few hundred microseconds for a thousand. */
  async #sum(userId: string, db: Kysely<SessionsSchema>): Promise<number> {
    const at = performance.now()
    const known = this.#sums.get(userId)
    if (known !== undefined && at - known.at < SUM_MS) return known.bytes
    const row = await db
      .selectFrom('sessions')
      .select((query) => query.fn.coalesce(query.fn.sum('stored_bytes'), sql.lit(0)).as('bytes'))
      .where('user_id', '=', userId)
      .executeTakeFirstOrThrow()
    const bytes = Number(row.bytes)
    this.#sums.set(userId, { bytes, at })
    for (const [id, sum] of this.#sums) if (at - sum.at >= SUM_MS) this.#sums.delete(id)
    return bytes
  }
}
