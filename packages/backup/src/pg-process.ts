/** Streams a PostgreSQL database through PostgreSQL's own programs. */
import { NoPgProgram, findPgProgram, libpqTarget } from '@sandlot/shared/node/pg-programs'
import type { Environment } from '@sandlot/shared/config'
import { holdSnapshot } from '@sandlot/storage/database/postgres-snapshot'
import { BackupError } from './backup-error.ts'
import { feed, outputOf, startProgram } from './child-program.ts'
import type { DatabaseMigrations } from './manifest.ts'

export interface PostgresPlace {
  /** `DATABASE_URL` */
  url: string
  /** Environment for finding programs and certificate authorities. */
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
 * Dumps both schemas from one snapshot. Read all bytes, then `close`. Throws `BackupError`,
 * `StorageError`; the bytes throw `BackupError` if pg_dump fails.
 */
export async function beginDump({ url, machine }: PostgresPlace): Promise<Dump> {
  const snapshot = await holdSnapshot(url)
  try {
    const { at, server, migrations } = snapshot
    if (migrations.sessions.length === 0)
      throw new BackupError(
        'no_deployment',
        'The database of DATABASE_URL has no Sandlot data; nothing was copied.',
        'Check DATABASE_URL. The first start of Sandlot creates the data.',
      )
    const { path, version } = programOf('pg_dump', Number.parseInt(server, 10), machine)
    const schemas = (['sessions', 'accounts'] as const).filter((name) => migrations[name].length > 0)
    const args = [
      '--format=custom',
      // The archive compresses better, and on another thread.
      '--compress=0',
      `--snapshot=${snapshot.id}`,
      ...schemas.map((name) => `--schema=${name}`),
    ]
    return {
      at,
      server,
      program: version,
      migrations,
      bytes: dumpOf(path, args, { url, machine }),
      close: snapshot.close,
    }
  } catch (error) {
    await snapshot.close()
    throw error
  }
}

/** Throws `BackupError` if none is new enough. */
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

async function* dumpOf(path: string, args: string[], place: PostgresPlace): AsyncGenerator<Buffer> {
  const { code, stderr } = yield* outputOf(start(path, args, place))
  if (code !== 0) throw failed('pg_dump', stderr)
}

/** Restores a dump in one transaction. `path`: pg_restore. Throws `BackupError`. */
export async function restoreDump(
  path: string,
  source: AsyncIterable<Uint8Array>,
  place: PostgresPlace,
): Promise<void> {
  const args = ['--single-transaction', '--exit-on-error', '--no-owner', '--no-privileges']
  const { code, stderr, broken } = await feed(start(path, args, place), source)
  if (code !== 0) throw failed('pg_restore', stderr)
  if (broken !== undefined) throw broken.error
}

function start(path: string, args: readonly string[], { url, machine }: PostgresPlace) {
  const { dbname, environment } = libpqTarget(url, machine)
  return startProgram(path, [...args, '--no-password', `--dbname=${dbname}`], environment)
}

function failed(program: string, stderr: string): BackupError {
  return new BackupError(
    'failed',
    `${program} failed: ${stderr}`,
    'Fix the problem that it names, then run the same command again.',
  )
}
