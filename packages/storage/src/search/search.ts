/** Search in chats, limited to those that the reader sees. */
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import {
  BY_AGENT,
  SEARCH_KINDS,
  type SearchHit,
  type SearchKind,
  type SearchQuery,
} from '@sandlot/shared/search/search'
import { metaOf } from '@sandlot/shared/chat/events'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { readableEvent } from '../tables/rows.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import type { ReaderOf } from '../shares/shares.ts'
import { storedText } from './index-texts.ts'
import { PER_SECOND, firstOf, kindWord, ownerWord, sessionWord } from './table.ts'
import { type Term, searchableOf, snippetOf, termsOf } from './text.ts'
import { searchIndexOf } from './word-index.ts'

/** Chats of others that a query lists by id; above that it filters results instead. */
const MOST_NAMED = 200
/** Chat names before the rest of the first page. */
const MOST_TITLES = 5

/** A hit without the facts of the accounts. */
interface FoundText extends Omit<SearchHit, 'by'> {
  /** The author's id; null: the agent. */
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

/** The reader's hits, newest first. Any text is valid; without a word there are no hits. */
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
    // The scope words only narrow the search; this condition decides.
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

/** Ids of others' chats that this reader sees now. */
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

/** Undefined if the text was removed since. */
async function hitOf(
  db: Kysely<SessionsSchema>,
  row: FoundRow,
  terms: readonly Term[],
): Promise<FoundText[]> {
  // A page of long outputs must not block the process.
  await pauseWhenDue()
  const { session_id: sessionId, seq, title, author } = row
  const kind = SEARCH_KINDS[row.kind] ?? 'message'
  const event = await db
    .selectFrom('events')
    .select(['seq', 'json'])
    .where('session_id', '=', sessionId)
    .where('seq', '=', seq)
    .executeTakeFirst()
  const stored = event && readableEvent(sessionId, event)
  const found = stored === undefined ? undefined : searchableOf(stored)
  if (stored === undefined || found === undefined) return []
  const text = kind === 'output' ? await storedText(db, sessionId, found) : found.text
  const id = kind === 'title' ? sessionId : row.ref
  return [{ sessionId, title, kind, seq, id, at: metaOf(stored).at, author, snippet: snippetOf(text, terms) }]
}
