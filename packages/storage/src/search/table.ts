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
