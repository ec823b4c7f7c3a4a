/** The stored outputs of calls. */
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import type { Kysely } from 'kysely'
import { MAX_CHUNK_BYTES, type OutputWriter } from './output-writer.ts'
import type { NoRoom, OutputRow } from '../tables/records.ts'
import { toOutputRow } from '../tables/rows.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import type { StoreRoom } from './store-room.ts'

export interface OutputReads {
  get(sessionId: string, callId: string): Promise<OutputRow | undefined>
  /** For all calls of a session. */
  list(sessionId: string): Promise<OutputRow[]>
  /** Stored bytes `[from, to)`; shorter if fewer are stored. */
  read(sessionId: string, callId: string, from: number, to: number): Promise<Uint8Array>
}

export interface OutputRows extends OutputReads {
  /**
   * Add bytes to a call's output at `offset`. Stored bytes are ignored, a hole is an error.
   * Batched: durable when the promise resolves; or it resolves with the reason that they, and the
   * rest of this output, are only counted. `epoch` as in `LogRows.append`.
   */
  append(
    sessionId: string,
    callId: string,
    offset: number,
    bytes: Uint8Array,
    epoch?: number,
  ): Promise<NoRoom | undefined>
  /**
   * The reason that so many bytes of optional data cannot be stored for this user; undefined: they
   * can.
   */
  missingRoom(userId: string, bytes: number): Promise<NoRoom | undefined>
}

export function outputReads(db: Kysely<SessionsSchema>): OutputReads {
  const outputs = (sessionId: string) =>
    db.selectFrom('outputs').selectAll().where('session_id', '=', sessionId)
  return {
    async get(sessionId, callId) {
      const row = await outputs(sessionId).where('call_id', '=', callId).executeTakeFirst()
      return row === undefined ? undefined : toOutputRow(row)
    },
    list: async (sessionId) => (await outputs(sessionId).orderBy('call_id').execute()).map(toOutputRow),
    read: (...args) => readOutput(db, ...args),
  }
}

export function storedOutputs(db: Kysely<SessionsSchema>, writer: OutputWriter, room: StoreRoom): OutputRows {
  return {
    ...outputReads(db),
    append: (...args) => writer.append(...args),
    missingRoom: (userId, bytes) => room.missing(userId, bytes),
  }
}

async function readOutput(
  db: Kysely<SessionsSchema>,
  ...[sessionId, callId, from, to]: Parameters<OutputReads['read']>
): ReturnType<OutputReads['read']> {
  // A reader of a long output requests piece after piece, and would otherwise block the process
  // throughout.
  await pauseWhenDue()
  const rows = await db
    .selectFrom('output_chunks')
    .select(['start_at', 'bytes'])
    .where('session_id', '=', sessionId)
    .where('call_id', '=', callId)
    // The chunk that contains `from` begins at most one chunk before it.
    .where('start_at', '>', from - MAX_CHUNK_BYTES)
    .where('start_at', '<', to)
    .orderBy('start_at')
    .execute()
  const parts = rows.map((row) =>
    row.bytes.subarray(Math.max(0, from - row.start_at), Math.max(0, to - row.start_at)),
  )
  const [first, ...others] = parts
  // A piece of one chunk need not be copied.
  const { buffer, byteOffset, length } =
    first !== undefined && others.length === 0 ? first : Buffer.concat(parts)
  return new Uint8Array(buffer, byteOffset, length)
}
