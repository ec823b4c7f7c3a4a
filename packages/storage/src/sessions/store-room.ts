/**
 * Storage limits for optional data of chats: outputs, images, copies. Texts and events are always
 * stored, so users above their budget can still write, and delete.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import { type Kysely, sql } from 'kysely'
import type { SessionsSchema } from '../tables/sessions.ts'
import type { NoRoom } from '../tables/records.ts'

/** For refused data. */
export function noRoomError(why: NoRoom, what: string): SandlotError {
  return new SandlotError('store_full', `${what} cannot be stored: ${NO_ROOM_TEXTS[why]}`)
}

export const NO_ROOM_TEXTS: Record<NoRoom, string> = {
  budget: 'your chats have used up their storage (SANDLOT_STORE_MB). Delete chats to make room.',
  disk: 'the disk of the server is nearly full. Its administrator must make room.',
}

export interface RoomLimits {
  /** The budget of one user's sessions. */
  userBytes: number
  /** Free space of the database's disk. */
  freeBytes: () => number
}

/** Reserved on the disk for events and other writes of the process. */
export const RESERVE_BYTES = 64 * 1024 * 1024
/** Maximum age of a user's cached sum. New data is added to it. */
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
   * The reason that `bytes` more of this user cannot be stored; undefined: they can. `db`: a
   * transaction in progress.
   */
  async missing(userId: string, bytes: number, db = this.#db): Promise<NoRoom | undefined> {
    if (this.#limits === undefined) return undefined
    const { userBytes, freeBytes } = this.#limits
    // Once into the log of the database, and once into its file.
    if (freeBytes() - 2 * bytes < RESERVE_BYTES) return 'disk'
    return (await this.#sum(userId, db)) + bytes > userBytes ? 'budget' : undefined
  }

  /** Adds stored bytes to the cached sum. */
  stored(userId: string, bytes: number): void {
    const sum = this.#sums.get(userId)
    if (sum !== undefined) sum.bytes += bytes
  }

  /** Discards the sum after a deletion or copy. */
  changed(userId: string): void {
    this.#sums.delete(userId)
  }

  /** One row per session: a few hundred microseconds for a thousand. */
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
