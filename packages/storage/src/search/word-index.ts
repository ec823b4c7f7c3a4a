/** Where the words of searched texts are, by database: FTS5 on SQLite, `tsvector` on PostgreSQL. */
import type { Kysely, RawBuilder, Transaction } from 'kysely'
import { dialectOf } from '../database/dialect.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import type { SearchTextsTable } from './table.ts'
import { fts5 } from './fts5.ts'
import type { Term } from './text.ts'
import { tsvector } from './tsvector.ts'

/** A text that is added to the index. */
interface IndexedText {
  row: Omit<SearchTextsTable, 'id'>
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

export function searchIndexOf<Schema>(db: Kysely<Schema>): SearchIndex {
  return dialectOf(db) === 'sqlite' ? fts5 : tsvector
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
