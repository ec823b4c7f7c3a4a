/** A session that begins with the log of another one. */
import { SandlotError } from '@sandlot/shared/errors'
import { type SessionEvent, metaOf } from '@sandlot/shared/events'
import type { Kysely, Transaction } from 'kysely'
import { toSessionRow } from './rows.ts'
import type { SessionsSchema } from './schema.ts'
import { type StoreRoom, noRoomError } from './store-room.ts'
import type { ForkedSession, SessionRow } from './store.ts'

/** Rows in one statement: SQLite allows 32,766 values. */
const ROWS_PER_STATEMENT = 1_000

export function forkSession(
  db: Kysely<SessionsSchema>,
  sourceId: string,
  fork: ForkedSession,
  events: readonly SessionEvent[],
  room: StoreRoom,
): Promise<SessionRow> {
  return db.transaction().execute(async (trx) => {
    const row = await trx
      .insertInto('sessions')
      .values({
        id: fork.id,
        user_id: fork.userId,
        cwd: fork.cwd,
        title: fork.title,
        mode: fork.mode,
        created_at: fork.at,
        updated_at: fork.at,
        last_seq: events.length,
        running_prompt_id: null,
        owner_epoch: 0,
      })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .returningAll()
      .executeTakeFirst()
    if (row === undefined) throw new SandlotError('conflict', `There is a session ${fork.id} already.`)
    let bytes = 0
    for (const piece of pieces(events)) {
      const rows = piece.map((event) => {
        const { seq, at } = metaOf(event)
        if (seq === undefined) throw new TypeError('An event without a number cannot be copied.')
        return { session_id: fork.id, seq, at, json: JSON.stringify(event) }
      })
      await trx.insertInto('events').values(rows).execute()
      for (const { json } of rows) bytes += Buffer.byteLength(json)
    }
    const calls = events.flatMap((event) => (event.sessionUpdate === 'tool_call' ? [event.toolCallId] : []))
    for (const piece of pieces(calls)) bytes += await storedBytes(trx, sourceId, piece)
    const missing = await room.missing(fork.userId, bytes, trx)
    if (missing !== undefined) throw noRoomError(missing, 'The copy of this chat')
    for (const piece of pieces(calls)) await copyOutputs(trx, sourceId, fork.id, piece)
    await trx.updateTable('sessions').set({ stored_bytes: bytes }).where('id', '=', fork.id).execute()
    return toSessionRow({ ...row, waiting: 0 })
  })
}

/** Of the outputs of these calls. */
async function storedBytes(
  trx: Transaction<SessionsSchema>,
  sessionId: string,
  calls: readonly string[],
): Promise<number> {
  const row = await trx
    .selectFrom('outputs')
    .select((query) => query.fn.sum('stored_bytes').as('bytes'))
    .where('session_id', '=', sessionId)
    .where('call_id', 'in', calls)
    .executeTakeFirst()
  return Number(row?.bytes ?? 0)
}

/** A copy, so that deleting one of the two leaves the other whole. */
async function copyOutputs(
  trx: Transaction<SessionsSchema>,
  from: string,
  to: string,
  calls: readonly string[],
): Promise<void> {
  await trx
    .insertInto('outputs')
    .columns(['session_id', 'call_id', 'stored_bytes', 'total_bytes', 'lines', 'complete'])
    .expression((query) =>
      query
        .selectFrom('outputs')
        .select((column) => [
          column.val(to).as('session_id'),
          'call_id',
          'stored_bytes',
          'total_bytes',
          'lines',
          'complete',
        ])
        .where('session_id', '=', from)
        .where('call_id', 'in', calls),
    )
    .execute()
  await trx
    .insertInto('output_chunks')
    .columns(['session_id', 'call_id', 'start_at', 'bytes'])
    .expression((query) =>
      query
        .selectFrom('output_chunks')
        .select((column) => [column.val(to).as('session_id'), 'call_id', 'start_at', 'bytes'])
        .where('session_id', '=', from)
        .where('call_id', 'in', calls),
    )
    .execute()
}

function* pieces<T>(all: readonly T[]): Generator<T[]> {
  for (let from = 0; from < all.length; from += ROWS_PER_STATEMENT) {
    yield all.slice(from, from + ROWS_PER_STATEMENT)
  }
}
