/**
 * Batched writes of output bytes, so that a command with much output costs the events of other
 * sessions few commits.
 */
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { Selectable, Transaction } from 'kysely'
import type { GroupCommit } from '../database/group-commit.ts'
import { notOwner } from '../storage-error.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import type { Fence } from '../replicas/replicas.ts'
import type { StoreRoom } from './store-room.ts'
import type { NoRoom } from '../tables/records.ts'

/** No stored chunk is larger; reads rely on it. */
export const MAX_CHUNK_BYTES = 256 * 1024
/** Pending bytes are written after this long … */
const FLUSH_AFTER_MS = 20
/**
 * … or as soon as so many are pending and no write is running: fast output does not wait for the
 * timer.
 */
const FLUSH_AT_BYTES = 256 * 1024

interface Pending {
  offset: number
  epoch: number | undefined
  bytes: Uint8Array
  resolve: (missing: NoRoom | undefined) => void
  reject: (error: unknown) => void
}

interface CallPending {
  sessionId: string
  callId: string
  pieces: Pending[]
}

export class OutputWriter {
  readonly #commits: GroupCommit<SessionsSchema>
  readonly #room: StoreRoom
  readonly #fence: Fence
  #pending = new Map<string, CallPending>()
  #pendingBytes = 0
  #timer: NodeJS.Timeout | undefined
  readonly #writes = new SerialQueue()

  constructor(commits: GroupCommit<SessionsSchema>, room: StoreRoom, fence: Fence) {
    this.#commits = commits
    this.#room = room
    this.#fence = fence
  }

  /**
   * Resolves when the bytes are durable, or with the reason that they are only counted: from then
   * on no more of this output is stored. Not copied: the caller must not change them before.
   */
  append(
    sessionId: string,
    callId: string,
    offset: number,
    bytes: Uint8Array,
    epoch?: number,
  ): Promise<NoRoom | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<NoRoom | undefined>()
    const key = `${sessionId} ${callId}`
    const call = this.#pending.get(key) ?? { sessionId, callId, pieces: [] }
    call.pieces.push({ offset, epoch, bytes, resolve, reject })
    this.#pending.set(key, call)
    this.#pendingBytes += bytes.length
    if (this.#pendingBytes >= FLUSH_AT_BYTES && this.#writes.size === 0) void this.flush()
    else this.#timer ??= setTimeout(() => void this.flush(), FLUSH_AFTER_MS)
    return promise
  }

  /** Writes pending bytes. Never rejects: every piece settles its own promise. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const calls = [...this.#pending.values()]
    this.#pending = new Map()
    this.#pendingBytes = 0
    await this.#writes.run(() => this.#write(calls))
    if (this.#pendingBytes >= FLUSH_AT_BYTES && this.#writes.size === 0) void this.flush()
  }

  async #write(calls: CallPending[]): Promise<void> {
    if (calls.length === 0) return
    try {
      const settle = await this.#commits.run(async (trx) => {
        const settled: (() => void)[] = []
        for (const call of calls) settled.push(...(await writeCall(trx, call, this.#room, this.#fence)))
        return settled
      })
      for (const settleOne of settle) settleOne()
    } catch (error) {
      for (const piece of calls.flatMap((call) => call.pieces)) piece.reject(error)
    }
  }
}

/** Returns functions that settle each piece once the transaction is committed. */
async function writeCall(
  trx: Transaction<SessionsSchema>,
  call: CallPending,
  room: StoreRoom,
  fence: Fence,
): Promise<(() => void)[]> {
  const { sessionId, callId, pieces } = call
  const session = await trx
    .selectFrom('sessions')
    .select(['owner_epoch', 'user_id'])
    .$if(fence.replica !== undefined, (query) => query.select(fence.ownerEpoch('locked').as('owned')))
    .where('id', '=', sessionId)
    .executeTakeFirst()
  if (session === undefined) {
    const error = new SandlotError('not_found', `There is no session ${sessionId} to store output of.`)
    return pieces.map((piece) => () => piece.reject(error))
  }

  const row = await trx
    .selectFrom('outputs')
    .select(['stored_bytes', 'total_bytes', 'cut'])
    .where('session_id', '=', sessionId)
    .where('call_id', '=', callId)
    .executeTakeFirst()
  const start = row?.stored_bytes ?? 0
  const isOurs = fence.admits(session.user_id, session.owned)
  const mayWrite = ({ epoch }: Pending): boolean =>
    epoch === undefined || (isOurs && epoch === session.owner_epoch)
  const owned = pieces.filter(mayWrite)
  const refuse = pieces
    .filter((piece) => !mayWrite(piece))
    .map((piece) => () => piece.reject(notOwner(sessionId)))
  const upTo = Math.max(0, ...owned.map(({ offset, bytes }) => offset + bytes.length))
  const counted = Math.max(row?.total_bytes ?? 0, upTo)
  const missing =
    upTo <= start ? undefined : (cutOf(row) ?? (await room.missing(session.user_id, upTo - start, trx)))
  if (missing !== undefined) {
    await saveCounts(trx, call, { stored_bytes: start, total_bytes: counted, cut: missing })
    return [...refuse, ...owned.map((piece) => () => piece.resolve(missing))]
  }
  const inOrder = takeInOrder(owned, start, callId)
  const { fresh, end } = inOrder
  const settle = [...refuse, ...inOrder.settle]
  if (end === start && (row !== undefined || inOrder.settle.length === 0)) return settle

  const [first, ...more] = fresh
  const bytes = first !== undefined && more.length === 0 ? first : Buffer.concat(fresh)
  await insertChunks(trx, sessionId, callId, start, bytes)
  await saveCounts(trx, call, { stored_bytes: end, total_bytes: Math.max(end, row?.total_bytes ?? 0) })
  await trx
    .updateTable('sessions')
    .set((query) => ({ stored_bytes: query('stored_bytes', '+', end - start) }))
    .where('id', '=', sessionId)
    .execute()
  return [...settle, () => room.stored(session.user_id, end - start)]
}

/** Retention only removes outputs of ended calls. */
function cutOf(row: Pick<Selectable<SessionsSchema['outputs']>, 'cut'> | undefined): NoRoom | undefined {
  return row?.cut === 'retention' ? undefined : (row?.cut ?? undefined)
}

function saveCounts(
  trx: Transaction<SessionsSchema>,
  { sessionId, callId }: CallPending,
  counts: { stored_bytes: number; total_bytes: number; cut?: NoRoom },
): Promise<unknown> {
  return trx
    .insertInto('outputs')
    .values({ session_id: sessionId, call_id: callId, lines: 0, complete: 0, ...counts })
    .onConflict((conflict) => conflict.columns(['session_id', 'call_id']).doUpdateSet(counts))
    .execute()
}

/** Drops stored bytes and refuses a piece that would leave a hole. */
function takeInOrder(
  pieces: readonly Pending[],
  start: number,
  callId: string,
): { fresh: Uint8Array[]; end: number; settle: (() => void)[] } {
  const fresh: Uint8Array[] = []
  const settle: (() => void)[] = []
  let end = start
  for (const piece of pieces) {
    if (piece.offset > end) {
      const message = `Output of ${callId} is stored up to byte ${end}; a piece at ${piece.offset} would leave a hole.`
      settle.push(() => piece.reject(new SandlotError('bad_request', message)))
      continue
    }
    const bytes = piece.bytes.subarray(Math.min(piece.bytes.length, end - piece.offset))
    fresh.push(bytes)
    end += bytes.length
    settle.push(() => piece.resolve(undefined))
  }
  return { fresh, end, settle }
}

async function insertChunks(
  trx: Transaction<SessionsSchema>,
  sessionId: string,
  callId: string,
  start: number,
  bytes: Uint8Array,
): Promise<void> {
  for (let from = 0; from < bytes.length; from += MAX_CHUNK_BYTES) {
    const chunk = bytes.subarray(from, from + MAX_CHUNK_BYTES)
    await trx
      .insertInto('output_chunks')
      .values({ session_id: sessionId, call_id: callId, start_at: start + from, bytes: chunk })
      .execute()
  }
}
