/**
 * Named numbers of a store, including prints of keys: processes that share a database must have the
 * same keys.
 */
import { type Kysely, sql } from 'kysely'

export async function addCounters(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('counters')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('value', 'bigint', (column) => column.notNull())
    .execute()
}

/**
 * True if one of these prints is the first that the database was used with under that name. Without
 * one yet, the first of these is stored.
 */
export async function isFirstPrint<S>(
  db: Kysely<S>,
  name: string,
  ...prints: readonly number[]
): Promise<boolean> {
  await sql`insert into counters (name, value) values (${name}, ${prints[0]})
    on conflict (name) do nothing`.execute(db)
  const { rows } = await sql<{ value: number }>`select value from counters where name = ${name}`.execute(db)
  return rows.some(({ value }) => prints.includes(value))
}

export async function changePrint<S>(db: Kysely<S>, name: string, print: number): Promise<void> {
  await sql`insert into counters (name, value) values (${name}, ${print})
    on conflict (name) do update set value = excluded.value`.execute(db)
}
