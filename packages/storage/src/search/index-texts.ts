/** Adds texts to the search index in the transaction that stores them, and removes them. */
import { SEARCH_KINDS } from '@sandlot/shared/search/search'
import { type SessionEvent, metaOf, seqOf } from '@sandlot/shared/chat/events'
import type { Kysely, Transaction } from 'kysely'
import type { SessionsSchema } from '../tables/sessions.ts'
import { PER_SECOND, firstOf, kindWord, ownerWord, sessionWord } from './table.ts'
import { MAX_SEARCHED, type Searchable, indexedText, outputText, searchableOf } from './text.ts'
import { searchIndexOf } from './word-index.ts'

type Trx = Transaction<SessionsSchema>

/** SQLite allows 32,766 values in a statement; a text has six. */
const TEXTS_PER_INSERT = 1_000

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
  const indexed = found.filter((one) => one.searchable.kind !== 'title' || one === last)
  for (let from = 0; from < indexed.length; from += TEXTS_PER_INSERT)
    await insertTexts(trx, session, indexed.slice(from, from + TEXTS_PER_INSERT))
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

/** The beginning of the stored output, else the model's text. */
export async function storedText(
  db: Kysely<SessionsSchema>,
  sessionId: string,
  found: Searchable,
): Promise<string> {
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

/** Removes some of a session's index entries. True if more may remain. */
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
