/**
 * The source databases of a move: migrated copies of the files, so that the files themselves are
 * only read.
 */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { hasCode } from '@sandlot/shared/base/errors'
import { accountsMigrations } from '../accounts/migrations.ts'
import { type Migrations, openWriter } from '../database/database.ts'
import type { StoreName } from '../database/dialect.ts'
import { type SqliteFile, asStorageError, checkCopy, openSqliteReader } from '../database/sqlite-file.ts'
import { sessionsMigrations } from '../store/migrations.ts'
import { StorageError } from '../storage-error.ts'

export const STORES: Record<StoreName, Migrations> = {
  sessions: sessionsMigrations,
  accounts: accountsMigrations,
}

/** Recreated in the target: the search index, and the list of migrations. */
const LEFT_OUT = /^(sqlite_|kysely_|search_(texts|words))/

export interface SourceTable {
  store: StoreName
  name: string
  columns: string[]
  rows: number
}

interface SourceRow {
  /** Its rowid. */
  position: number
  values: Record<string, unknown>
}

export interface Source {
  /** Over every byte of the files. */
  digest: string
  /** Referenced tables come first. */
  tables: SourceTable[]
  /** In the order of `position`. */
  rowsOf(table: SourceTable, after: number): Iterable<SourceRow>
  close(): void
}

/**
 * Copies the files into `folder`, which is emptied before and removed by `close`. Nothing may write
 * to them during the copy. Throws `StorageError`: newer_schema, corrupt, full, cannot_open.
 */
export async function openSource(files: Record<StoreName, string>, folder: string): Promise<Source> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const opened = new Map<StoreName, SqliteFile>()
  const close = (): void => {
    for (const file of opened.values()) file.close()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const digest = createHash('sha256')
    for (const store of ['sessions', 'accounts'] as const) {
      const copy = join(folder, `${store}.db`)
      for (const part of ['', '-wal']) {
        digest.update(`${store}${part}\0`)
        const path = `${files[store]}${part}`
        if (existsSync(path)) await copyFile(path, `${copy}${part}`, digest)
      }
      opened.set(store, await prepared(files[store], copy, STORES[store]))
    }
    const fileOf = (store: StoreName): SqliteFile => {
      const file = opened.get(store)
      if (file === undefined) throw new Error(`migrate: ${store} is not open`)
      return file
    }
    return {
      digest: digest.digest('hex'),
      tables: [...opened].flatMap(([store, file]) => tablesOf(store, file)),
      *rowsOf({ store, name }, after) {
        const rows = fileOf(store)
          .prepare<[number], Record<string, unknown> & { sandlot_place: number }>(
            `select rowid as sandlot_place, * from "${name}" where rowid > ? order by rowid`,
          )
          .iterate(after)
        for (const { sandlot_place: position, ...values } of rows) yield { position, values }
      },
      close,
    }
  } catch (error) {
    close()
    throw error
  }
}

async function copyFile(from: string, to: string, digest: ReturnType<typeof createHash>): Promise<void> {
  const read = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      digest.update(chunk)
      done(null, chunk)
    },
  })
  try {
    await pipeline(createReadStream(from), read, createWriteStream(to, { mode: 0o600 }))
  } catch (error) {
    if (!hasCode(error, 'ENOSPC')) throw error
    throw new StorageError('full', `${to}: there is no space for a copy of ${from}; make room.`, {
      cause: error,
    })
  }
}

/** The fully migrated copy, open for reading. `path`: the original. */
async function prepared(path: string, copy: string, migrations: Migrations): Promise<SqliteFile> {
  if (!existsSync(copy)) throw new StorageError('cannot_open', `There is no ${path}.`)
  try {
    const applied = checkCopy(copy)
    if (applied.length === 0)
      throw new StorageError('cannot_open', `${path} is no database of Sandlot, or an empty one.`)
    await (await openWriter(copy, migrations)).close()
    return openSqliteReader(copy)
  } catch (error) {
    const typed = asStorageError(path, error)
    if (typed instanceof StorageError && typed !== error) throw typed
    if (!(error instanceof StorageError)) throw error
    throw new StorageError(error.code, error.message.replaceAll(copy, path), { cause: error })
  }
}

function tablesOf(store: StoreName, file: SqliteFile): SourceTable[] {
  const names = file
    .prepare<[], string>("select name from sqlite_master where type = 'table' order by name")
    .pluck()
    .all()
    .filter((name) => !LEFT_OUT.test(name))
  const parents = new Map(
    names.map((name) => {
      const keys = file.pragma(`foreign_key_list("${name}")`) as { table: string }[]
      return [name, keys.map(({ table }) => table).filter((table) => table !== name)]
    }),
  )
  const ordered: string[] = []
  const add = (name: string): void => {
    if (ordered.includes(name)) return
    for (const parent of parents.get(name) ?? []) add(parent)
    ordered.push(name)
  }
  for (const name of names) add(name)
  return ordered.map((name) => ({
    store,
    name,
    columns: (file.pragma(`table_info("${name}")`) as { name: string }[])
      .map((column) => column.name)
      .toSorted(),
    rows: file.prepare<[], number>(`select count(*) from "${name}"`).pluck().get() ?? 0,
  }))
}
