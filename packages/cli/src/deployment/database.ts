/** Access to the database of `DATABASE_URL` through PostgreSQL's own programs. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Environment, readConfig, settingSchema } from '@sandlot/shared/config'
import { failed, type Finding, ok } from '@sandlot/shared/base/finding'
import { OLDEST_POSTGRES } from '@sandlot/shared/config/postgres-version'
import { messageOf } from '@sandlot/shared/base/errors'
import { NoPgProgram, findPgProgram, libpqTarget } from '@sandlot/shared/node/pg-programs'
import type { CliConfig } from '../config.ts'
import { isOnPostgres } from './replicas.ts'
import { StepError } from '../steps.ts'

const SCHEMAS = ['sessions', 'accounts'] as const
/** Allowed difference between its clock and ours. */
const MOST_SKEW_MS = 10_000
/** Time in which connections of ended processes close. */
const CLOSING_MS = 5_000
const FIX =
  'Check that it runs, and the host, name, password and database in DATABASE_URL. Then run the same command again.'

interface Database {
  /** The version of PostgreSQL, like 15. */
  major: number
  dbname: string
  environment: Environment
  program: (name: 'pg_dump' | 'pg_restore' | 'psql') => string
}

/** @throws StepError where it cannot be reached, or a program is missing. */
async function openDatabase({ root, environment }: CliConfig): Promise<Database> {
  const read = readConfig(settingSchema('backup').pick({ DATABASE_URL: true }), environment, (path) =>
    readFileSync(resolve(root, path), 'utf8'),
  )
  if (read.DATABASE_URL === undefined) throw new Error('DATABASE_URL is not set')
  const target = libpqTarget(read.DATABASE_URL, environment)
  const program = (name: 'pg_dump' | 'pg_restore' | 'psql', major: number): string => {
    try {
      return findPgProgram(name, major, environment).path
    } catch (error) {
      if (error instanceof NoPgProgram) throw new StepError(error.message, error.fix, { cause: error })
      throw error
    }
  }
  const number = await query({ ...target, psql: program('psql', 0) }, 'show server_version_num')
  const major = Math.floor(Number(number) / 10_000)
  return { ...target, major, program: (name) => program(name, major) }
}

async function query(
  { psql, dbname, environment }: { psql: string; dbname: string; environment: Environment },
  statement: string,
): Promise<string> {
  const args = ['--no-psqlrc', '--no-password', '--quiet', '--tuples-only', '--no-align']
  try {
    const said = await promisify(execFile)(psql, [...args, '--command', statement, dbname], {
      env: environment,
    })
    return said.stdout.trim()
  } catch (error) {
    throw new StepError(psqlProblem(error), FIX, { cause: error })
  }
}

/** The message of psql, without its prefix and hints. */
function psqlProblem(error: unknown): string {
  const said = error instanceof Error && 'stderr' in error ? String(error.stderr) : ''
  return /^psql: error: (.+)/m.exec(said)?.[1] ?? messageOf(error).trim()
}

/**
 * Waits until none of our processes is connected: a rollback would lose later writes.
 * @throws StepError if processes of another machine stay connected.
 */
export async function refuseOthers(config: CliConfig): Promise<void> {
  const database = await openDatabase(config)
  const connection = { ...database, psql: database.program('psql') }
  const until = performance.now() + CLOSING_MS
  for (;;) {
    const others = await query(
      connection,
      `select string_agg(distinct coalesce(client_addr::text, 'this machine'), ', ') from pg_stat_activity
       where datname = current_database() and application_name like 'sandlot%'
         and application_name <> 'sandlot backup'`,
    )
    if (others === '') return
    if (performance.now() > until)
      throw new StepError(
        `Other agents or services still use the same database (from ${others}), and a rollback would lose their changes.`,
        'Stop them too, then run this again. To upgrade several one after the other, see docs/postgresql.md.',
      )
    await sleep(200)
  }
}

/** Dumps both schemas into one file. @throws StepError. */
export async function dumpDatabase(config: CliConfig, file: string): Promise<void> {
  const { dbname, environment, program } = await openDatabase(config)
  const schemas = SCHEMAS.map((name) => `--schema=${name}`)
  const args = [
    '--format=custom',
    '--compress=1',
    ...schemas,
    '--no-password',
    `--file=${file}`,
    `--dbname=${dbname}`,
  ]
  const child = spawn(program('pg_dump'), args, { env: environment, stdio: ['ignore', 'ignore', 'pipe'] })
  await ended(child, 'pg_dump')
}

/** Replaces both schemas by those of the file, in one transaction. @throws StepError. */
export async function replaceDatabase(config: CliConfig, file: string): Promise<void> {
  const { dbname, environment, program } = await openDatabase(config)
  const script = spawn(program('pg_restore'), ['--no-owner', '--no-privileges', '--file=-', file], {
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const psql = spawn(
    program('psql'),
    ['--no-psqlrc', '--no-password', '--quiet', '--single-transaction', '--set=ON_ERROR_STOP=1', dbname],
    { env: environment, stdio: ['pipe', 'ignore', 'pipe'] },
  )
  const ends = Promise.all([ended(script, 'pg_restore'), ended(psql, 'psql')])
  async function* statements(): AsyncGenerator<string | Buffer> {
    yield `drop schema if exists ${SCHEMAS.join(', ')} cascade;\n`
    for await (const chunk of script.stdout) yield chunk as Buffer
    // An incomplete dump must roll the transaction back.
    if (script.exitCode !== 0) await once(script, 'close')
    if (script.exitCode !== 0) yield 'do $$ begin raise exception $x$the dump cannot be read$x$; end $$;\n'
  }
  // If psql rejects a statement it exits first, and `ends` has its message.
  await pipeline(Readable.from(statements()), psql.stdin).catch(() => undefined)
  await ends
}

async function ended(child: ReturnType<typeof spawn>, name: string): Promise<void> {
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-2_000)))
  const code = await new Promise<number | string>((settle) => {
    child.once('error', (error) => settle(error.message))
    child.once('close', (number, signal) => settle(number ?? signal ?? 'unknown exit code'))
  })
  if (code !== 0) throw new StepError(`${name} failed (${code}).`, FIX, { details: stderr.trim() })
}

/** Live agents, by the rule of the sessions store. */
const AGENTS = `select coalesce('agents: ' || string_agg(
    id || case draining when 1 then ' (draining)' else '' end, ', ' order by id), 'no agent is running')
  from sessions.replicas
  where heartbeat_at >= floor(extract(epoch from clock_timestamp()) * 1000) - 7000`

/** Undefined if Sandlot can use the database. */
async function findUnfitness(
  major: number,
  ask: (statement: string) => Promise<string>,
): Promise<{ problem: string; fix: string } | undefined> {
  if (major < OLDEST_POSTGRES)
    return {
      problem: `version ${major} answers`,
      fix: `Upgrade PostgreSQL to version ${OLDEST_POSTGRES} or later.`,
    }
  const encoding = await ask('show server_encoding')
  if (encoding !== 'UTF8')
    return {
      problem: `the encoding of the database is ${encoding}`,
      fix: 'Create one with createdb --encoding UTF8 --template template0, and restore into it.',
    }
  const before = Date.now()
  const its = Number(await ask('select floor(extract(epoch from clock_timestamp()) * 1000)::bigint'))
  const ahead = its < before ? its - before : Math.max(0, its - Date.now())
  if (Math.abs(ahead) > MOST_SKEW_MS)
    return {
      problem: `its clock is ${Math.round(Math.abs(ahead) / 1000)} s ${ahead > 0 ? 'ahead of' : 'behind'} this machine’s`,
      fix: 'Synchronize both clocks with NTP, or chats show inconsistent times. Ownership depends only on the clock of PostgreSQL.',
    }
  return undefined
}

/** Checks that the database answers, suits Sandlot, and can be backed up from here. */
export async function databaseCheck(config: CliConfig): Promise<Finding[]> {
  if (!isOnPostgres(config)) return []
  const [id, name] = ['database', 'PostgreSQL']
  try {
    const database = await openDatabase(config)
    const backups = `backups use ${database.program('pg_dump')}`
    const connection = { ...database, psql: database.program('psql') }
    const unfit = await findUnfitness(database.major, (statement) => query(connection, statement))
    if (unfit !== undefined) return [failed('must', id, name, unfit.problem, unfit.fix)]
    const known = await query(connection, "select to_regclass('sessions.replicas') is not null")
    const agents =
      known === 't' ? await query(connection, AGENTS) : 'Sandlot has not been started with it yet'
    return [ok('must', id, name, `version ${database.major} answers; ${agents}; ${backups}`)]
  } catch (error) {
    const fix = error instanceof StepError ? error.fix : FIX
    // Without these programs Sandlot runs, but cannot be backed up.
    const group = error instanceof StepError && error.cause instanceof NoPgProgram ? 'warn' : 'must'
    return [failed(group, id, name, messageOf(error), fix)]
  }
}
