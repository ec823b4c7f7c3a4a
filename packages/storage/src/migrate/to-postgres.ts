/**
 * Moves two SQLite files into an empty PostgreSQL database. Rows go in batches, each committed with
 * its progress, so that an interrupted move resumes; every table is read back and compared. Until
 * it is complete, no Sandlot opens the database (`openPostgres`).
 */
import { type Kysely, sql } from 'kysely'
import { GroupCommit } from '../database/group-commit.ts'
import { refusePooledByTransaction } from '../database/pooler.ts'
import { MOVING_SCHEMA, addressOf, connectPostgres, openPostgres } from '../database/postgres.ts'
import type { StoreName } from '../database/dialect.ts'
import { indexWaiting } from '../search/late-indexing.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import { StorageError } from '../storage-error.ts'
import { TableDigest, type TargetTable, canonicalRow, countNuls } from './row-digest.ts'
import { STORES, type Source, type SourceTable, openSource } from './source.ts'

/** Rows per batch. PostgreSQL takes 65,535 values in a statement. */
const MOST_ROWS = 500
const MOST_VALUES = 30_000
const MOST_BYTES = 4 * 1024 * 1024
/** Rows per read. */
const READ_ROWS = 500
const OLDEST_SERVER = 150_000

type Plain = Kysely<unknown>

export interface MovedTable {
  /** `sessions.events` */
  name: string
  rows: number
  /** The same for the source and the target. */
  digest: string
  /** Number of U+0000 in the file, which PostgreSQL cannot store. */
  leftOut: number
}

interface MoveOptions {
  files: Record<StoreName, string>
  /** For copies of the files; removed at the end. */
  folder: string
  url: string
  doing: (what: string) => void
}

/**
 * Nothing may write to the files during the move. Throws `StorageError`: `not_empty`,
 * `other_source`, `locked`, and the errors of opening either.
 */
export async function moveToPostgres({ files, folder, url, doing }: MoveOptions): Promise<MovedTable[]> {
  const { db, health, close } = connectPostgres(url, { connections: 2 })
  try {
    await refusePooledByTransaction(db, addressOf(url))
    await refuseUnfit(db)
    doing('copying the files')
    const source = await openSource(files, folder)
    try {
      const moving = new Moving(db, url, source, doing)
      return await moving.run()
    } finally {
      source.close()
    }
  } catch (error) {
    throw health.typed(error)
  } finally {
    await close()
  }
}

async function refuseUnfit(db: Plain): Promise<void> {
  const { rows } = await sql<{ version: number; encoding: string; alone: boolean }>`
    select current_setting('server_version_num')::int as version,
      current_setting('server_encoding') as encoding,
      pg_try_advisory_lock(hashtext('sandlot is moved here')) as alone
  `.execute(db)
  const { version = 0, encoding = '', alone = false } = rows[0] ?? {}
  const refuse = (words: string): StorageError => new StorageError('cannot_open', words)
  if (version < OLDEST_SERVER) throw refuse('The PostgreSQL is older than version 15.')
  if (encoding !== 'UTF8')
    throw refuse(`The database has the encoding ${encoding}: make it with createdb --encoding UTF8.`)
  if (!alone) throw new StorageError('locked', 'Another ./sandlot migrate is running on this database.')
}

class Moving {
  readonly #db: Plain
  readonly #url: string
  readonly #source: Source
  readonly #doing: (what: string) => void

  constructor(db: Plain, url: string, source: Source, doing: (what: string) => void) {
    this.#db = db
    this.#url = url
    this.#source = source
    this.#doing = doing
  }

  async run(): Promise<MovedTable[]> {
    await this.#begin()
    for (const table of this.#source.tables) await this.#move(table)
    const moved: MovedTable[] = []
    for (const table of this.#source.tables) moved.push(await this.#compare(table))
    await this.#setSequences()
    await this.#index()
    this.#doing('the end')
    await sql`analyze`.execute(this.#db)
    await this.#db.transaction().execute(async (trx) => {
      await this.#setTriggers(trx, 'enable')
      await sql`drop schema ${sql.id(MOVING_SCHEMA)} cascade`.execute(trx)
    })
    return moved
  }

  /** Creates the tables, or finds the progress. */
  async #begin(): Promise<void> {
    const { digest } = this.#source
    const schemas = await sql<{ name: string }>`
      select nspname::text as name from pg_namespace
      where nspname in ('sessions', 'accounts', ${MOVING_SCHEMA})
    `.execute(this.#db)
    const there = schemas.rows.map(({ name }) => name)
    if (there.length > 0 && !there.includes(MOVING_SCHEMA))
      throw new StorageError(
        'not_empty',
        `There is a Sandlot in the database already (schemas ${there.join(', ')}); make another one with createdb.`,
      )
    if (there.length === 0)
      await this.#db.transaction().execute(async (trx) => {
        await sql`create schema ${sql.id(MOVING_SCHEMA)}`.execute(trx)
        await sql`
          create table ${sql.id(MOVING_SCHEMA, 'progress')} (
            name text primary key, last_place bigint not null, rows bigint not null, digest text not null
          )
        `.execute(trx)
        await this.#note(trx, 'source', { position: 0, rows: 0, digest })
      })
    const source = await this.#progress('source')
    if (source?.digest !== digest)
      throw new StorageError(
        'other_source',
        'The database holds a part of other files, or of these before they were changed; make another one with createdb.',
      )
    if ((await this.#progress('tables')) !== undefined) return
    this.#doing('making the tables')
    for (const [schema, migrations] of Object.entries(STORES) as [StoreName, (typeof STORES)[StoreName]][])
      await (await openPostgres({ url: this.#url, schema }, migrations, 'moving')).close()
    await this.#db.transaction().execute(async (trx) => {
      // Rows inserted by migrations are in the files too.
      const names = this.#source.tables.map(({ store, name }) => sql.id(store, name))
      await sql`truncate ${sql.join(names)} cascade`.execute(trx)
      await this.#setTriggers(trx, 'disable')
      await this.#note(trx, 'tables', { position: 0, rows: 0, digest: '' })
    })
  }

  /** Rows inserted by triggers are in the files too. */
  async #setTriggers(trx: Plain, to: 'enable' | 'disable'): Promise<void> {
    for (const { store, name } of this.#source.tables)
      await sql`alter table ${sql.id(store, name)} ${sql.raw(to)} trigger user`.execute(trx)
  }

  async #move(table: SourceTable): Promise<void> {
    const target = await this.#targetOf(table)
    const name = nameOf(table)
    let leftOut = (await this.#progress(leftOutOf(name)))?.rows ?? 0
    const begun = await this.#progress(name)
    let { position, rows } = begun ?? { position: -(2 ** 53), rows: 0 }
    const digest = new TableDigest(begun?.digest)
    let batch: Record<string, unknown>[] = []
    let bytes = 0
    const store = async (): Promise<void> => {
      if (batch.length === 0) return
      const columns = sql.join(table.columns.map((column) => sql.id(column)))
      const values = sql.join(
        batch.map((row) => sql`(${sql.join(table.columns.map((column) => row[column]))})`),
      )
      await this.#db.transaction().execute(async (trx) => {
        await sql`
          insert into ${sql.id(table.store, table.name)} (${columns}) overriding system value values ${values}
        `.execute(trx)
        await this.#note(trx, name, { position, rows, digest: digest.toString() })
        if (leftOut > 0) await this.#note(trx, leftOutOf(name), { position, rows: leftOut, digest: '' })
      })
      this.#doing(`${name}: ${rows} of ${table.rows} rows`)
      batch = []
      bytes = 0
    }
    for (const row of this.#source.rowsOf(table, position)) {
      const values = canonicalRow(table, target, row.values)
      leftOut += countNuls(target, row.values)
      digest.add(table.columns, values)
      batch.push(values)
      bytes += Object.values(values).reduce<number>((sum, value) => sum + sizeOf(value), 0)
      position = row.position
      rows += 1
      if (
        batch.length >= MOST_ROWS ||
        batch.length * table.columns.length >= MOST_VALUES ||
        bytes >= MOST_BYTES
      )
        await store()
    }
    await store()
    if (rows === 0) await this.#note(this.#db, name, { position, rows, digest: digest.toString() })
  }

  /** Reads every stored row. Throws `corrupt` if it differs from the source. */
  async #compare(table: SourceTable): Promise<MovedTable> {
    const name = nameOf(table)
    this.#doing(`${name}: comparing`)
    const target = await this.#targetOf(table)
    const sent = await this.#progress(name)
    const leftOut = (await this.#progress(leftOutOf(name)))?.rows ?? 0
    const digest = new TableDigest()
    let count = 0
    await this.#db.transaction().execute(async (trx) => {
      await sql`
        declare moved no scroll cursor for select * from ${sql.id(table.store, table.name)}
      `.execute(trx)
      for (;;) {
        const { rows } = await sql<Record<string, unknown>>`fetch ${sql.lit(READ_ROWS)} from moved`.execute(
          trx,
        )
        for (const row of rows) digest.add(table.columns, canonicalRow(table, target, row))
        count += rows.length
        if (rows.length < READ_ROWS) return
      }
    })
    if (count !== table.rows || sent?.digest !== digest.toString())
      throw new StorageError(
        'corrupt',
        `${name} is not in PostgreSQL as it is in the file (${count} of ${table.rows} rows, or other values); make another database with createdb.`,
      )
    return { name, rows: count, digest: digest.toString(), leftOut }
  }

  /** Throws if the tables have different columns. */
  async #targetOf({ store, name, columns }: SourceTable): Promise<TargetTable> {
    const { rows } = await sql<{ column: string; type: string }>`
      select column_name::text as column, data_type::text as type from information_schema.columns
      where table_schema = ${store} and table_name = ${name}
    `.execute(this.#db)
    const types = new Map(rows.map(({ column, type }) => [column, type]))
    const differ = types.size !== columns.length || columns.some((column) => !types.has(column))
    if (differ) throw new Error(`migrate: ${store}.${name} has other columns in PostgreSQL`)
    const unique = await sql<{ column: string }>`
      select attname::text as column from pg_index
      join pg_attribute on attrelid = indrelid and attnum = any(indkey)
      where indisunique and indrelid = ${`${store}.${name}`}::regclass
    `.execute(this.#db)
    return { types, keys: new Set(unique.rows.map(({ column }) => column)) }
  }

  async #setSequences(): Promise<void> {
    const { rows } = await sql<{ schema: string; table: string; column: string }>`
      select table_schema::text as schema, table_name::text as table, column_name::text as column
      from information_schema.columns
      where table_schema in ('sessions', 'accounts') and (is_identity = 'YES' or column_default like 'nextval(%')
    `.execute(this.#db)
    for (const { schema, table, column } of rows)
      await sql`
        select setval(
          pg_get_serial_sequence(${`"${schema}"."${table}"`}, ${column}),
          coalesce((select max(${sql.id(column)}) from ${sql.id(schema, table)}), 0) + 1, false
        )
      `.execute(this.#db)
  }

  async #index(): Promise<void> {
    const { db, close } = await openPostgres<SessionsSchema>(
      { url: this.#url, schema: 'sessions' },
      STORES.sessions,
      'moving',
    )
    try {
      const indexed = new Set<string>()
      const all = this.#source.tables.find((table) => nameOf(table) === 'sessions.sessions')?.rows ?? 0
      await indexWaiting(db, new GroupCommit(db, () => undefined), async (sessionId) => {
        indexed.add(sessionId)
        this.#doing(`search: chat ${indexed.size} of ${all}`)
        return true
      })
    } finally {
      await close()
    }
  }

  async #progress(name: string): Promise<{ position: number; rows: number; digest: string } | undefined> {
    const { rows } = await sql<{ position: number; rows: number; digest: string }>`
      select last_place as position, rows, digest from ${sql.id(MOVING_SCHEMA, 'progress')} where name = ${name}
    `.execute(this.#db)
    return rows[0]
  }

  async #note(
    db: Plain,
    name: string,
    { position, rows, digest }: { position: number; rows: number; digest: string },
  ): Promise<void> {
    await sql`
      insert into ${sql.id(MOVING_SCHEMA, 'progress')} (name, last_place, rows, digest)
      values (${name}, ${position}, ${rows}, ${digest})
      on conflict (name) do update set
        last_place = excluded.last_place, rows = excluded.rows, digest = excluded.digest
    `.execute(db)
  }
}

/** A row in the table of progress whose `rows` are characters. */
function leftOutOf(name: string): string {
  return `left out of ${name}`
}

function nameOf({ store, name }: SourceTable): string {
  return `${store}.${name}`
}

function sizeOf(value: unknown): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 8
}
