/**
 * The search index of chats: a row for each text in `search_texts`, and its words, but not the text
 * itself, under the same number in what the database has for words (`word-index.ts`).
 *
 * Numbers grow with the time of what they stand for, so the newest are found first without sorting.
 * Settled events are indexed in the transaction that stores them; `sessions.indexed_seq` says how
 * far. What came before, copies and handed-over chats are indexed in small slices behind that.
 */
import { createHash } from 'node:crypto'
import type { SearchKind } from '@sandlot/shared/chat/search'
import type { Kysely, RawBuilder, Transaction } from 'kysely'
import type { SessionsSchema } from '../tables/sessions.ts'
import type { Term } from './text.ts'

/** Of the numbers of one second. */
export const PER_SECOND = 2 ** 20
/** Later times count as this one: 52 bits are whole numbers. */
const LAST_SECOND = 2 ** 32 - 1

export function firstOf(at: number): number {
  return Math.min(Math.max(0, Math.floor(at / 1000)), LAST_SECOND) * PER_SECOND
}

/** Ids in words that the tokenizer leaves whole. */
export function ownerWord(userId: string): string {
  return `u${digest(userId)}`
}

export function sessionWord(sessionId: string): string {
  return `s${digest(sessionId)}`
}

export function kindWord(kind: SearchKind): string {
  return `k${kind}`
}

function digest(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 16)
}

/** A text that is added to the index. */
interface IndexedText {
  row: Omit<SessionsSchema['search_texts'], 'id'>
  /** Its number is one in `[first, end)`. */
  first: number
  end: number
  /** Folded, each followed by a space, of letters, digits and marks only. */
  words: string
  /** Words of whose it is. */
  scope: readonly string[]
}

/** Its table is called `search_words`; rows that go from `search_texts` go from it too. */
export interface SearchIndex {
  /** Of the number of a text. */
  readonly idType: 'integer' | 'bigint'
  /** The column with that number. */
  readonly id: RawBuilder<unknown>
  /** Of a migration, behind the table of texts. */
  create(db: Kysely<unknown>): Promise<void>
  /** Each with a number that no other has; of one second mostly in the order that they came in. */
  add(trx: Transaction<SessionsSchema>, texts: readonly IndexedText[]): Promise<void>
  /** All terms, and of each scope one word. */
  matches(terms: readonly Term[], scopes: readonly (readonly string[])[]): RawBuilder<unknown>
  /** Any number of values. */
  isOneOf(column: RawBuilder<unknown>, values: readonly string[]): RawBuilder<unknown>
}
