/** Opens a store's database: an SQLite file, by its path, or PostgreSQL, by its address. */
import { type Migrations, type OpenDatabase, openReader, openWriter } from './database.ts'
import { openPostgres } from './postgres.ts'
import { type StoreName, isPostgres } from './dialect.ts'
import type { FileMode } from './sqlite-file.ts'

/** For the writing process. `mode`: of a file. Throws like `openWriter` or `openPostgres`. */
export function openStore<Schema>(
  where: string,
  name: StoreName,
  migrations: Migrations,
  mode?: FileMode,
): Promise<OpenDatabase<Schema>> {
  return isPostgres(where)
    ? openPostgres({ url: where, schema: name }, migrations)
    : openWriter(where, migrations, mode)
}

/**
 * For other processes; the first one migrates PostgreSQL. Throws like `openReader` or
 * `openPostgres`.
 */
export function openStoreReader<Schema>(
  where: string,
  name: StoreName,
  migrations: Migrations,
  options: { waitMs?: number; signal?: AbortSignal } = {},
): Promise<OpenDatabase<Schema>> {
  return isPostgres(where)
    ? openPostgres({ url: where, schema: name }, migrations)
    : openReader(where, Object.keys(migrations), options)
}
