/** A database of PostgreSQL as one stream, by PostgreSQL's own programs. */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { NoPgProgram, findPgProgram, libpqTarget } from '@sandlot/shared/node/pg-programs'
import type { Environment } from '@sandlot/shared/config'
import { holdSnapshot } from '@sandlot/storage/database/postgres-snapshot'
import { BackupError } from './backup-error.ts'
import { startProgram } from './child-program.ts'
import type { DatabaseMigrations } from './manifest.ts'

export interface PostgresPlace {
  /** `DATABASE_URL` */
  url: string
  /** Where programs and authorities are looked for. */
  machine: Environment
}

interface Dump {
  at: string
  /** Versions of PostgreSQL: of the server, and of the program that made the dump. */
  server: string
  program: string
  migrations: DatabaseMigrations
  bytes: AsyncIterable<Uint8Array>
  close: () => Promise<void>
}

/**
 * Both schemas as of one moment, while others write. The bytes are read until their end, then
 * `close`. Throws `BackupError`, `StorageError`; the bytes throw `BackupError` where pg_dump fails.
 */
export async function beginDump({ url, machine }: PostgresPlace): Promise<Dump> {
  const snapshot = await holdSnapshot(url)
  try {
    const { at, server, migrations } = snapshot
    if (migrations.sessions.length === 0)
      throw new BackupError(
        'no_deployment',
        'There is nothing of Sandlot in the database of DATABASE_URL; nothing was copied.',
        'It is there once Sandlot has run with it.',
      )
    const { path, version } = programOf('pg_dump', Number.parseInt(server, 10), machine)
    const schemas = (['sessions', 'accounts'] as const).filter((name) => migrations[name].length > 0)
    const args = [
      '--format=custom',
      // The archive compresses it, better and on another thread.
      '--compress=0',
      `--snapshot=${snapshot.id}`,
      ...schemas.map((name) => `--schema=${name}`),
    ]
    return {
      at,
      server,
      program: version,
      migrations,
      bytes: outputOf(path, args, { url, machine }),
      close: snapshot.close,
    }
  } catch (error) {
    await snapshot.close()
    throw error
  }
}

/** Throws `BackupError` where there is none that is new enough. */
export function programOf(
  name: 'pg_dump' | 'pg_restore',
  major: number,
  machine: Environment,
): ReturnType<typeof findPgProgram> {
  try {
    return findPgProgram(name, major, machine)
  } catch (error) {
    if (!(error instanceof NoPgProgram)) throw error
    throw new BackupError('no_program', error.message, error.fix, { cause: error })
  }
}

async function* outputOf(path: string, args: string[], place: PostgresPlace): AsyncGenerator<Buffer> {
  const { child, ended } = start(path, args, place)
  child.stdin.end()
  try {
    yield* child.stdout as AsyncIterable<Buffer>
  } finally {
    child.stdout.destroy()
  }
  const { code, said } = await ended
  if (code !== 0) throw failed('pg_dump', said)
}

/**
 * Makes of a dump what it was made of, in one transaction: all of it or nothing. `path`: of a
 * pg_restore. Throws `BackupError`.
 */
export async function restoreDump(
  path: string,
  source: AsyncIterable<Uint8Array>,
  place: PostgresPlace,
): Promise<void> {
  const args = ['--single-transaction', '--exit-on-error', '--no-owner', '--no-privileges']
  const { child, ended } = start(path, args, place)
  child.stdout.resume()
  const fed = await pipeline(Readable.from(source), child.stdin).then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
  child.stdin.destroy()
  const { code, said } = await ended
  if (code !== 0) throw failed('pg_restore', said)
  if (fed !== undefined) throw fed.error
}

function start(path: string, args: readonly string[], { url, machine }: PostgresPlace) {
  const { dbname, environment } = libpqTarget(url, machine)
  return startProgram(path, [...args, '--no-password', `--dbname=${dbname}`], environment)
}

function failed(program: string, said: string): BackupError {
  return new BackupError(
    'failed',
    `${program} failed: ${said}`,
    'What it names has to be mended; then run the same command again.',
  )
}
