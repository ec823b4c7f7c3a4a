/**
 * Forks of a session: copied in pieces, each a commit, so that neither the process nor other
 * sessions' writes wait for a long one. Until the last piece the copy has no user, so no read finds
 * it.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import { type SessionEvent, metaOf } from '@sandlot/shared/chat/events'
import type { Kysely } from 'kysely'
import type { GroupCommit } from '../database/group-commit.ts'
import { removeRows } from './remove.ts'
import { NO_USER, toSessionRow } from '../tables/rows.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import { type StoreRoom, noRoomError } from './store-room.ts'
import type { ForkedSession, SessionRow } from '../tables/records.ts'

/** Per commit. */
const EVENTS_PER_COMMIT = 200
const BYTES_PER_COMMIT = 2 * 1024 * 1024
const CALLS_PER_COMMIT = 500

type Commits = GroupCommit<SessionsSchema>

interface ForkParts {
  db: Kysely<SessionsSchema>
  commits: Commits
  room: StoreRoom
}

export async function forkSession(
  { db, commits, room }: ForkParts,
  sourceId: string,
  fork: ForkedSession,
  events: readonly SessionEvent[],
): Promise<SessionRow> {
  await begin(commits, fork, events.length)
  try {
    let bytes = 0
    for (const piece of pieces(events, EVENTS_PER_COMMIT)) bytes += await copyEvents(commits, fork.id, piece)
    const calls = events.flatMap(outputsOf)
    for (const piece of pieces(calls, CALLS_PER_COMMIT)) bytes += await storedBytes(db, sourceId, piece)
    await checkRoom(room, fork, bytes)
    for (const piece of pieces(calls, CALLS_PER_COMMIT))
      await copyOutputs(db, commits, sourceId, fork.id, piece)
    return await finish({ commits, room }, sourceId, fork, bytes)
  } catch (error) {
    await removeRows(commits, fork.id)
    throw error
  }
}

/** The ids of the outputs that an event may refer to. */
function outputsOf(event: SessionEvent): string[] {
  const ofProvider = metaOf(event).forProvider?.replay?.output
  const ofCall = event.sessionUpdate === 'tool_call' ? [event.toolCallId] : []
  return ofProvider === undefined ? ofCall : [...ofCall, ofProvider]
}

function* pieces<T>(all: readonly T[], size: number): Generator<T[]> {
  for (let from = 0; from < all.length; from += size) yield all.slice(from, from + size)
}

async function begin(commits: Commits, fork: ForkedSession, lastSeq: number): Promise<void> {
  const made = await commits.run((trx) =>
    trx
      .insertInto('sessions')
      .values({
        id: fork.id,
        user_id: NO_USER,
        cwd: fork.cwd,
        title: fork.title,
        mode: fork.mode,
        created_at: fork.at,
        updated_at: fork.at,
        last_seq: lastSeq,
        running_prompt_id: null,
        owner_epoch: 0,
      })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .returning('id')
      .executeTakeFirst(),
  )
  if (made === undefined) throw new SandlotError('conflict', `There is a session ${fork.id} already.`)
}

async function checkRoom(
  room: StoreRoom,
  { userId }: ForkedSession,
  bytes: number,
  db?: Kysely<SessionsSchema>,
): Promise<void> {
  const missing = await room.missing(userId, bytes, db)
  if (missing !== undefined) throw noRoomError(missing, 'The copy of this chat')
}

/**
 * Gives the copy to its user. Throws `not_found` if the source was deleted since: outputs may be
 * missing then.
 */
async function finish(
  { commits, room }: Pick<ForkParts, 'commits' | 'room'>,
  sourceId: string,
  fork: ForkedSession,
  bytes: number,
): Promise<SessionRow> {
  return commits.run(async (trx) => {
    const source = await trx
      .selectFrom('sessions')
      .select('id')
      .where('id', '=', sourceId)
      .where('user_id', '!=', NO_USER)
      .executeTakeFirst()
    if (source === undefined) throw new SandlotError('not_found', `There is no session ${sourceId}.`)
    // Again: several copies may have started while there was room for one.
    await checkRoom(room, fork, bytes, trx)
    const row = await trx
      .updateTable('sessions')
      .set({ user_id: fork.userId, stored_bytes: bytes })
      .where('id', '=', fork.id)
      .returningAll()
      .executeTakeFirstOrThrow()
    return toSessionRow({ ...row, waiting: 0 })
  })
}

/** Bytes of these calls' outputs. */
async function storedBytes(
  db: Kysely<SessionsSchema>,
  sessionId: string,
  calls: readonly string[],
): Promise<number> {
  const row = await db
    .selectFrom('outputs')
    .select((query) => query.fn.sum('stored_bytes').as('bytes'))
    .where('session_id', '=', sessionId)
    .where('call_id', 'in', calls)
    .executeTakeFirst()
  return Number(row?.bytes ?? 0)
}

/** Returns the copied bytes. */
async function copyEvents(commits: Commits, to: string, events: readonly SessionEvent[]): Promise<number> {
  const rows = events.map((event) => {
    const { seq, at } = metaOf(event)
    if (seq === undefined) throw new TypeError('An event without a number cannot be copied.')
    return { session_id: to, seq, at, json: JSON.stringify(event) }
  })
  await commits.run((trx) => trx.insertInto('events').values(rows).execute())
  return rows.reduce((sum, { json }) => sum + Buffer.byteLength(json), 0)
}

/** A copy, so that deleting either session does not affect the other. */
async function copyOutputs(
  db: Kysely<SessionsSchema>,
  commits: Commits,
  from: string,
  to: string,
  calls: readonly string[],
): Promise<void> {
  const outputs = await db
    .selectFrom('outputs')
    .selectAll()
    .where('session_id', '=', from)
    .where('call_id', 'in', calls)
    .execute()
  if (outputs.length === 0) return
  const rows = outputs.map((row) => ({ ...row, session_id: to }))
  await commits.run((trx) => trx.insertInto('outputs').values(rows).execute())
  for (const piece of piecesOf(outputs)) {
    await commits.run((trx) =>
      trx
        .insertInto('output_chunks')
        .columns(['session_id', 'call_id', 'start_at', 'bytes'])
        .expression((query) =>
          query
            .selectFrom('output_chunks')
            .select((column) => [column.val(to).as('session_id'), 'call_id', 'start_at', 'bytes'])
            .where('session_id', '=', from)
            .where('call_id', 'in', piece.calls)
            .where('start_at', '>=', piece.from)
            .where('start_at', '<', piece.to),
        )
        .execute(),
    )
  }
}

interface Piece {
  calls: string[]
  /** Chunks that begin in `[from, to)`. */
  from: number
  to: number
}

/** Joins small outputs, and splits large ones. */
function* piecesOf(outputs: readonly { call_id: string; stored_bytes: number }[]): Generator<Piece> {
  let calls: string[] = []
  let bytes = 0
  for (const { call_id, stored_bytes } of outputs) {
    if (stored_bytes > BYTES_PER_COMMIT) {
      for (let from = 0; from < stored_bytes; from += BYTES_PER_COMMIT)
        yield { calls: [call_id], from, to: from + BYTES_PER_COMMIT }
      continue
    }
    calls.push(call_id)
    bytes += stored_bytes
    if (bytes < BYTES_PER_COMMIT) continue
    yield { calls, from: 0, to: BYTES_PER_COMMIT }
    calls = []
    bytes = 0
  }
  if (calls.length > 0) yield { calls, from: 0, to: BYTES_PER_COMMIT }
}
