/**
 * The search index of chats: a row for each text in `search_texts`; its words, without the text
 * itself, are under the same number in the database's word index (`word-index.ts`).
 *
 * Numbers grow with the time of the text, so the newest are found first without sorting. Settled
 * events are indexed in the transaction that stores them; `sessions.indexed_seq` is the progress.
 * Earlier ones, copies and handed-over chats are indexed later in small slices.
 */
import { createHash } from 'node:crypto'
import type { SearchKind } from '@sandlot/shared/search/search'
import type { Kysely, RawBuilder, Transaction } from 'kysely'
import type { GroupCommit } from '../database/group-commit.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import type { Term } from './text.ts'

/** Numbers per second. */
export const PER_SECOND = 2 ** 20
/** Later times count as this one: whole numbers have 52 bits. */
const LAST_SECOND = 2 ** 32 - 1

export function firstOf(at: number): number {
  return Math.min(Math.max(0, Math.floor(at / 1000)), LAST_SECOND) * PER_SECOND
}

/** Ids in words that the tokenizer does not split. */
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

/** A text to index. */
interface IndexedText {
  row: Omit<SessionsSchema['search_texts'], 'id'>
  /** Its number is in `[first, end)`. */
  first: number
  end: number
  /** Folded, each followed by a space, of letters, digits and marks only. */
  words: string
  /** Words of its owner, session and kind. */
  scope: readonly string[]
}

/** Its table is called `search_words`; removing rows from `search_texts` removes them there too. */
export interface SearchIndex {
  /** The type of a text's number. */
  readonly idType: 'integer' | 'bigint'
  /** The column with that number. */
  readonly id: RawBuilder<unknown>
  /** For the migration, after the table of texts. */
  create(db: Kysely<unknown>): Promise<void>
  /** Assigns a unique number to each; within a second mostly in their order. */
  add(trx: Transaction<SessionsSchema>, texts: readonly IndexedText[]): Promise<void>
  /** All terms, and one word of each scope. */
  matches(terms: readonly Term[], scopes: readonly (readonly string[])[]): RawBuilder<unknown>
  /** Erases words of removed texts, in short transactions. */
  forgetRemoved(commits: GroupCommit<SessionsSchema>): Promise<void>
  /** Any number of values. */
  isOneOf(column: RawBuilder<unknown>, values: readonly string[]): RawBuilder<unknown>
}
