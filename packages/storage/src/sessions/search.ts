/**
 * The search index of chats: a row for each text in `search_texts`, and its words, but not the text
 * itself, under the same number in what the database has for words (`search-index.ts`).
 *
 * Numbers grow with the time of what they stand for, so the newest are found first without sorting.
 * Settled events are indexed in the transaction that stores them; `sessions.indexed_seq` says how
 * far. What came before, copies and handed-over chats are indexed in small slices behind that.
 */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import {
  BY_AGENT,
  SEARCH_KINDS,
  type SearchHit,
  type SearchKind,
  type SearchQuery,
} from '@sandlot/shared/desk/search'
import { type SessionEvent, metaOf, seqOf } from '@sandlot/shared/events'
import { type Kysely, type RawBuilder, type Transaction, sql } from 'kysely'
import { dialectOf } from '../database/dialect.ts'
import type { GroupCommit } from '../database/group-commit.ts'
import { NO_USER, toEvent } from './rows.ts'
import type { SessionsSchema } from './schema.ts'
import { searchIndexOf } from './search-index.ts'
import {
  MAX_SEARCHED,
  type Searchable,
  type Term,
  indexedText,
  outputText,
  searchableOf,
  snippetOf,
  termsOf,
} from './search-text.ts'
import type { ReaderOf } from './shares.ts'

type Trx = Transaction<SessionsSchema>

export interface SearchTextsTable {
  /** The second it was written in, and a number within that. */
  id: number
  session_id: string
  seq: number
  /** Place in `SEARCH_KINDS`. */
  kind: number
  ref: string
  /** Null: the agent. */
  author: string | null
}

/** Of the numbers of one second. */
const PER_SECOND = 2 ** 20
/** Later times count as this one: 52 bits are whole numbers. */
const LAST_SECOND = 2 ** 32 - 1
/** SQLite allows 32,766 values in a statement; a text has six. */
const TEXTS_PER_INSERT = 1_000
/** Chats of others that a search names one by one; with more it looks at all and leaves out. */
const MOST_NAMED = 200
/** Names of chats before the first page of the rest. */
const MOST_TITLES = 5

// ── Writing
// ──────────────────────────────────────────────────────────────────────────────────────────────

interface IndexedSession {
  id: string
  userId: string
}

/** Index these numbered events, in the transaction that stores them. */
export async function indexEvents(
  trx: Trx,
  session: IndexedSession,
  events: readonly SessionEvent[],
): Promise<void> {
  const found: FoundWords[] = []
  for (const event of events) {
    const searchable = searchableOf(event)
    if (searchable === undefined) continue
    const text =
      searchable.kind === 'output' ? await storedText(trx, session.id, searchable) : searchable.text
    const words = indexedText(text)
    if (words !== '') found.push({ event, searchable, words })
  }
  const titles = found.filter(({ searchable }) => searchable.kind === 'title')
  if (titles.length > 0) await removeTitle(trx, session.id)
  const last = titles.at(-1)
  const kept = found.filter((one) => one.searchable.kind !== 'title' || one === last)
  for (let from = 0; from < kept.length; from += TEXTS_PER_INSERT)
    await insertTexts(trx, session, kept.slice(from, from + TEXTS_PER_INSERT))
}

interface FoundWords {
  event: SessionEvent
  searchable: Searchable
  words: string
}

async function insertTexts(
  trx: Trx,
  { id: sessionId, userId }: IndexedSession,
  found: readonly FoundWords[],
): Promise<void> {
  await searchIndexOf(trx).add(
    trx,
    found.map(({ event, searchable: { kind, ref, author = userId }, words }) => {
      const first = firstOf(metaOf(event).at)
      const seq = seqOf(event) ?? 0
      return {
        row: { session_id: sessionId, seq, kind: SEARCH_KINDS.indexOf(kind), ref, author },
        first,
        end: first + PER_SECOND,
        words,
        scope: [ownerWord(userId), sessionWord(sessionId), kindWord(kind)],
      }
    }),
  )
}

/** A chat has one name. */
async function removeTitle(trx: Trx, sessionId: string): Promise<void> {
  await trx
    .deleteFrom('search_texts')
    .where('session_id', '=', sessionId)
    .where('kind', '=', SEARCH_KINDS.indexOf('title'))
    .execute()
}

/** The beginning of what is stored of the output, else what the model read. */
async function storedText(db: Kysely<SessionsSchema>, sessionId: string, found: Searchable): Promise<string> {
  const chunks = await db
    .selectFrom('output_chunks')
    .select('bytes')
    .where('session_id', '=', sessionId)
    .where('call_id', '=', found.ref)
    .where('start_at', '<', MAX_SEARCHED)
    .orderBy('start_at')
    .execute()
  if (chunks.length === 0) return found.text
  return outputText(Buffer.concat(chunks.map(({ bytes }) => bytes)).subarray(0, MAX_SEARCHED))
}

/** Removes some of what is indexed of a session. Whether there may be more. */
export async function removeIndexed(trx: Trx, sessionId: string, limit: number): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('search_texts')
    .where('session_id', '=', sessionId)
    .where('id', 'in', (query) =>
      query.selectFrom('search_texts').select('id').where('session_id', '=', sessionId).limit(limit),
    )
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows) === limit
}

// ── What was stored before, behind the rest
// ──────────────────────────────────────────────────────────────────────────────────────────────

/** Of one slice. */
const EVENTS_PER_SLICE = 40
/** Characters of events after which a slice ends, and the milliseconds until the next one. */
const SLICE_CHARS = 256 * 1024
const REST_MS = 5

/** Indexes what is not indexed yet, newest chats first, while others write. */
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
   * There may be something. Returns at once; what cannot be done now (a full disk) is left for the
   * next time.
   */
  poke(): void {
    if (this.#stopped) return
    this.#again = true
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
      // Something has come while this was ending.
      if (this.#again) this.poke()
    })
  }

  /** Resolves when no slice is under way and none follows. */
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

/** Indexes all that is not, the newest chats first. `goOn`: called after each slice. */
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

/** Whether there may be more. */
async function indexSlice(trx: Trx, sessionId: string): Promise<boolean> {
  const session = await trx
    .selectFrom('sessions')
    .select(['user_id', 'indexed_seq', 'last_seq'])
    .where('id', '=', sessionId)
    // Another process may index the same, or append to it.
    .$if(dialectOf(trx) === 'postgres', (query) => query.forUpdate())
    .executeTakeFirst()
  if (session === undefined || session.user_id === NO_USER) return false
  // What another owner had indexed, and they had: begun anew.
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
    events.push(...readable(sessionId, row))
    chars += row.json.length
    if (chars > SLICE_CHARS) break
  }
  await indexEvents(trx, { id: sessionId, userId: session.user_id }, events)
  await trx.updateTable('sessions').set({ indexed_seq: upTo }).where('id', '=', sessionId).execute()
  return upTo < session.last_seq
}

/** A damaged event has nothing to find. */
function readable(sessionId: string, row: { seq: number; json: string }): SessionEvent[] {
  try {
    return [toEvent(sessionId, row)]
  } catch {
    return []
  }
}

// ── Searching
// ─────────────────────────────────────────────────────────────────────────────────────────────

/** A hit without what only the accounts know. */
interface FoundText extends Omit<SearchHit, 'by'> {
  /** Who wrote it, by id; null: the agent. */
  author: string | null
}

export interface FoundTexts {
  hits: FoundText[]
  next: number | null
}

interface FoundRow {
  id: number
  session_id: string
  seq: number
  kind: number
  ref: string
  author: string | null
  title: string | null
}

/**
 * What this reader sees of it, newest first. Any text is a search; without a word it finds nothing.
 */
export async function searchTexts(
  db: Kysely<SessionsSchema>,
  reader: ReaderOf,
  query: SearchQuery,
): Promise<FoundTexts> {
  const terms = termsOf(query.q)
  if (terms.length === 0) return { hits: [], next: null }
  const shared = await sharedWith(db, reader)
  const kinds = query.kind ?? SEARCH_KINDS
  const find = (of: readonly SearchKind[], limit: number, before?: number): Promise<FoundRow[]> =>
    of.length === 0
      ? Promise.resolve([])
      : findRows(db, { reader, shared, terms, query, kinds: of, limit, before })
  const onlyTitles = kinds.every((kind) => kind === 'title')
  const rest = onlyTitles ? kinds : kinds.filter((kind) => kind !== 'title')
  const titles =
    onlyTitles || query.before !== undefined || !kinds.includes('title')
      ? []
      : await find(['title'], MOST_TITLES)
  const found = await find(rest, query.limit + 1, query.before)
  const page = found.slice(0, query.limit)
  const hits: FoundText[] = []
  for (const row of [...titles, ...page]) hits.push(...(await hitOf(db, row, terms)))
  return { hits, next: found.length > page.length ? (page.at(-1)?.id ?? null) : null }
}

async function findRows(
  db: Kysely<SessionsSchema>,
  asked: {
    reader: ReaderOf
    shared: readonly string[]
    terms: readonly Term[]
    query: SearchQuery
    kinds: readonly SearchKind[]
    limit: number
    before: number | undefined
  },
): Promise<FoundRow[]> {
  const { reader, shared, terms, query, kinds, limit, before } = asked
  const { chat, who, since, until, project, archived } = query
  const scopes = [
    chat === undefined ? readerWords(reader, shared) : [sessionWord(chat)],
    kinds.length === SEARCH_KINDS.length ? [] : kinds.map(kindWord),
  ].filter((words) => words.length > 0)
  const index = searchIndexOf(db)
  const conditions: RawBuilder<unknown>[] = [
    index.matches(terms, scopes),
    // The words are only the shorter way; these are the rule.
    sql`(s.user_id = ${reader.id} or ${index.isOneOf(sql`s.id`, shared)})`,
    sql`t.kind in (${sql.join(kinds.map((kind) => sql.lit(SEARCH_KINDS.indexOf(kind))))})`,
  ]
  if (before !== undefined) conditions.push(sql`${index.id} < ${before}`)
  if (since !== undefined) conditions.push(sql`${index.id} >= ${firstOf(since)}`)
  if (until !== undefined) conditions.push(sql`${index.id} < ${firstOf(until) + PER_SECOND}`)
  if (chat !== undefined) conditions.push(sql`t.session_id = ${chat}`)
  if (who !== undefined) conditions.push(who === BY_AGENT ? sql`t.author is null` : sql`t.author = ${who}`)
  const marked = sql`select session_id from chat_marks where user_id = ${reader.id}`
  if (project !== undefined) conditions.push(sql`t.session_id in (${marked} and project_id = ${project})`)
  if (archived !== undefined)
    conditions.push(sql`t.session_id ${sql.raw(archived ? 'in' : 'not in')} (${marked} and archived = 1)`)
  const { rows } = await sql<FoundRow>`
    select t.id, t.session_id, t.seq, t.kind, t.ref, t.author, s.title
    from search_words
    join search_texts t on t.id = ${index.id}
    join sessions s on s.id = t.session_id
    where ${sql.join(conditions, sql` and `)}
    order by ${index.id} desc
    limit ${limit}
  `.execute(db)
  return rows
}

/** Ids of chats of others that this reader sees now. */
async function sharedWith(db: Kysely<SessionsSchema>, { id, teams = [] }: ReaderOf): Promise<string[]> {
  const rows = await db
    .selectFrom('shares')
    .select('session_id')
    .distinct()
    .where((share) => share.or([share('expires_at', 'is', null), share('expires_at', '>', Date.now())]))
    .where((share) =>
      share.or([
        share.and([share('kind', '=', 'person'), share('target_id', '=', id)]),
        ...(teams.length === 0
          ? []
          : [share.and([share('kind', '=', 'team'), share('target_id', 'in', teams)])]),
      ]),
    )
    .execute()
  return rows.map((row) => row.session_id)
}

function readerWords({ id }: ReaderOf, shared: readonly string[]): string[] {
  return shared.length > MOST_NAMED ? [] : [ownerWord(id), ...shared.map(sessionWord)]
}

/** None where the text is gone meanwhile. */
async function hitOf(
  db: Kysely<SessionsSchema>,
  row: FoundRow,
  terms: readonly Term[],
): Promise<FoundText[]> {
  // A page of long outputs must not hold the process.
  await pauseWhenDue()
  const { session_id: sessionId, seq, title, author } = row
  const kind = SEARCH_KINDS[row.kind] ?? 'message'
  const event = await db
    .selectFrom('events')
    .select(['seq', 'json'])
    .where('session_id', '=', sessionId)
    .where('seq', '=', seq)
    .executeTakeFirst()
  const [stored] = event === undefined ? [] : readable(sessionId, event)
  const found = stored === undefined ? undefined : searchableOf(stored)
  if (stored === undefined || found === undefined) return []
  const text = kind === 'output' ? await storedText(db, sessionId, found) : found.text
  const id = kind === 'title' ? sessionId : row.ref
  return [{ sessionId, title, kind, seq, id, at: metaOf(stored).at, author, snippet: snippetOf(text, terms) }]
}

// ── Numbers and words of the index
// ──────────────────────────────────────────────────────────────────────────────────────────────

function firstOf(at: number): number {
  return Math.min(Math.max(0, Math.floor(at / 1000)), LAST_SECOND) * PER_SECOND
}

/** Ids in words that the tokenizer leaves whole. */
function ownerWord(userId: string): string {
  return `u${digest(userId)}`
}

function sessionWord(sessionId: string): string {
  return `s${digest(sessionId)}`
}

function kindWord(kind: SearchKind): string {
  return `k${kind}`
}

function digest(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 16)
}

/** A migration. */
export async function addSearch(db: Kysely<unknown>): Promise<void> {
  const index = searchIndexOf(db)
  await db.schema
    .alterTable('sessions')
    .addColumn('indexed_seq', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute()
  await db.schema
    .createTable('search_texts')
    .addColumn('id', index.idType, (column) => column.primaryKey())
    .addColumn('session_id', 'text', (column) =>
      column.notNull().references('sessions.id').onDelete('cascade'),
    )
    .addColumn('seq', 'bigint', (column) => column.notNull())
    .addColumn('kind', 'integer', (column) => column.notNull())
    .addColumn('ref', 'text', (column) => column.notNull())
    .addColumn('author', 'text')
    .execute()
  await db.schema
    .createIndex('search_texts_by_session')
    .on('search_texts')
    .columns(['session_id', 'kind'])
    .execute()
  await index.create(db)
}
