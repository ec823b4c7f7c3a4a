/** Indexes stored events without an index entry (copies, handed-over chats) in the background. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import type { Kysely, Transaction } from 'kysely'
import { dialectOf } from '../database/dialect.ts'
import type { GroupCommit } from '../database/group-commit.ts'
import { NO_USER, readableEvent } from '../tables/rows.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import { indexEvents, removeIndexed } from './index-texts.ts'

type Trx = Transaction<SessionsSchema>

/** Per slice. */
const EVENTS_PER_SLICE = 40
/** Characters of events that end a slice, and milliseconds until the next one. */
const SLICE_CHARS = 256 * 1024
const REST_MS = 5

/** Indexes remaining events, newest chats first, during other writes. */
export class LateIndexing {
  readonly #db: Kysely<SessionsSchema>
  readonly #commits: GroupCommit<SessionsSchema>
  #running: Promise<void> | undefined
  #again = false
  #stopped = false

  constructor(db: Kysely<SessionsSchema>, commits: GroupCommit<SessionsSchema>) {
    this.#db = db
    this.#commits = commits
  }

  /**
   * Starts a run unless one is active. Returns at once; failed work (a full disk) is retried with
   * the next call.
   */
  poke(): void {
    if (this.#stopped) return
    this.#again = true
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
      // A request arrived during the end of this run.
      if (this.#again) this.poke()
    })
  }

  /** Resolves when no slice is running and none follows. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
  }

  async #run(): Promise<void> {
    while (this.#again && !this.#stopped) {
      this.#again = false
      await Promise.allSettled([this.#indexAll()])
    }
  }

  async #indexAll(): Promise<void> {
    await indexWaiting(this.#db, this.#commits, async () => {
      await sleep(REST_MS)
      return !this.#stopped
    })
  }
}

/** Indexes all remaining events, newest chats first. `goOn`: called after each slice. */
export async function indexWaiting(
  db: Kysely<SessionsSchema>,
  commits: GroupCommit<SessionsSchema>,
  goOn: (sessionId: string) => Promise<boolean>,
): Promise<void> {
  const waiting = await db
    .selectFrom('sessions')
    .select('id')
    .where('user_id', '!=', NO_USER)
    .whereRef('indexed_seq', '<', 'last_seq')
    .orderBy('updated_at', 'desc')
    .execute()
  for (const { id } of waiting) {
    let more = true
    while (more) {
      more = await commits.run((trx) => indexSlice(trx, id))
      if (!(await goOn(id))) return
    }
  }
}

/** True if more may remain. */
async function indexSlice(trx: Trx, sessionId: string): Promise<boolean> {
  const session = await trx
    .selectFrom('sessions')
    .select(['user_id', 'indexed_seq', 'last_seq'])
    .where('id', '=', sessionId)
    // Another process may index the same, or append to it.
    .$if(dialectOf(trx) === 'postgres', (query) => query.forUpdate())
    .executeTakeFirst()
  if (session === undefined || session.user_id === NO_USER) return false
  // Index entries of a previous owner are removed first.
  if (session.indexed_seq === 0 && (await removeIndexed(trx, sessionId, EVENTS_PER_SLICE))) return true
  const rows = await trx
    .selectFrom('events')
    .select(['seq', 'json'])
    .where('session_id', '=', sessionId)
    .where('seq', '>', session.indexed_seq)
    .orderBy('seq')
    .limit(EVENTS_PER_SLICE)
    .execute()
  let chars = 0
  let upTo = session.last_seq
  const events: SessionEvent[] = []
  for (const row of rows) {
    upTo = row.seq
    const event = readableEvent(sessionId, row)
    // A damaged one has no text.
    if (event !== undefined) events.push(event)
    chars += row.json.length
    if (chars > SLICE_CHARS) break
  }
  await indexEvents(trx, { id: sessionId, userId: session.user_id }, events)
  await trx.updateTable('sessions').set({ indexed_seq: upTo }).where('id', '=', sessionId).execute()
  return upTo < session.last_seq
}
