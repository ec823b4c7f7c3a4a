/** The word index of a database: FTS5 on SQLite, `tsvector` on PostgreSQL. */
import type { Kysely } from 'kysely'
import { dialectOf } from '../database/dialect.ts'
import { fts5 } from './fts5.ts'
import type { SearchIndex } from './table.ts'
import { tsvector } from './tsvector.ts'

export function searchIndexOf<Schema>(db: Kysely<Schema>): SearchIndex {
  return dialectOf(db) === 'sqlite' ? fts5 : tsvector
}

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
