/**
 * A PostgreSQL for one test: a cluster in a temporary folder, reachable only by a socket in it, and
 * removed afterwards. The programs are Debian's package `postgresql`; without them, dependent tests
 * are skipped with a message.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Kysely, PostgresDialect } from 'kysely'
import { Client, Pool } from 'pg'

const run = promisify(execFile)
const DEBIAN = '/usr/lib/postgresql'
/** PostgreSQL refuses to be root; Debian's `nobody` will do. */
const NOBODY = { uid: 65_534, gid: 65_534 }
const TRIES = 50

/** A folder with `initdb` and `postgres`, which may be links. */
const found = [
  ...(process.env['PATH'] ?? '').split(delimiter),
  ...(existsSync(DEBIAN) ? readdirSync(DEBIAN).map((version) => join(DEBIAN, version, 'bin')) : []),
].find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')))

/** The folder with all programs of PostgreSQL, undefined where there is none. */
export const postgresPrograms = found === undefined ? undefined : dirname(realpathSync(join(found, 'initdb')))

export interface Postgres {
  /** Connections of one more client; destroy it when it is over. `schema`: where its tables are; default `public`. */
  connect<Schema>(schema?: string): Kysely<Schema>
  /** The address of a new database, which begins as a copy of `like` where that is given. */
  database(name: string, like?: string): Promise<string>
  /** The rows of one statement, by a connection of its own. */
  rows<Row extends object>(database: string, query: string, values?: unknown[]): Promise<Row[]>
  /** Kills the server like a crash, runs `meanwhile`, and starts it again on the same data. */
  crash(meanwhile: () => Promise<void>): Promise<void>
  /** The folder of its socket `.s.PGSQL.5432`, with its data in `data`. */
  readonly folder: string
  /** Ends the server: SIGINT stops it in order, SIGKILL as a crash would. */
  end(signal: 'SIGINT' | 'SIGKILL'): Promise<void>
  /** Starts it again on the same data; nothing where it runs. */
  start(): Promise<void>
  /** Ends everybody's connections and takes all that there are, until what it returns is called. */
  takeAll(): Promise<() => Promise<void>>
  /** Copies the data as it is now, without a stop, as one keeps a second server. */
  copy(): Promise<void>
  /** Kills the server and continues with the copy: later commits are lost. */
  failOver(): Promise<void>
  /** Ends the connections and the server, and removes everything. */
  stop(): Promise<void>
}

/**
 * `durable`: it writes to the disk as one that keeps people's data does, for what is measured.
 * `within`: the folder that its own is made in.
 */
export async function startPostgres(
  programs: string,
  { durable = false, within = tmpdir() }: { durable?: boolean; within?: string } = {},
): Promise<Postgres> {
  const folder = mkdtempSync(join(within, 'sandlot-pg-'))
  const isRoot = process.getuid?.() === 0
  const as = isRoot ? NOBODY : {}
  if (isRoot) chownSync(folder, NOBODY.uid, NOBODY.gid)
  const data = join(folder, 'data')
  const copied = join(folder, 'copied')
  const options = { ...as, cwd: folder, env: { PATH: programs, LC_ALL: 'C' } }
  const made = ['-D', data, '-U', 'sandlot', '-A', 'trust', '--no-sync', '-E', 'UTF8']
  await run(join(programs, 'initdb'), made, options)
  const settings = [
    'listen_addresses=',
    ...(durable ? [] : ['fsync=off', 'max_connections=60', 'shared_buffers=16MB']),
  ]
  const at = { host: folder, user: 'sandlot', database: 'postgres' }
  const runs = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null
  let server: ChildProcess | undefined
  const start = async (): Promise<void> => {
    // Processes of one that was killed hold its memory for a moment longer.
    for (let tries = 0; server === undefined || !runs(server); tries++) {
      server = spawn(
        join(programs, 'postgres'),
        ['-D', data, '-k', folder, ...settings.flatMap((one) => ['-c', one])],
        { ...options, stdio: 'ignore' },
      )
      await whenReady(at, server).catch((error: unknown) => {
        if (tries === TRIES) throw error
      })
    }
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (server === undefined || !runs(server)) return
    const ended = once(server, 'exit')
    server.kill(signal)
    await ended
  }
  await start()
  const clients: Kysely<unknown>[] = []
  return {
    connect<Schema>(schema = 'public') {
      const pool = new Pool({ ...at, max: 8, options: `-c search_path=${schema}` })
      // A connection that the server ends at its stop.
      pool.on('error', () => {})
      const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
      clients.push(db as Kysely<unknown>)
      return db
    },
    async database(name, like = 'template1') {
      const client = new Client(at)
      await client.connect()
      const [made, from] = [name, like].map((one) => client.escapeIdentifier(one))
      await client.query(`create database ${made} template ${from}`)
      await client.end()
      return `postgres://sandlot@localhost/${name}?host=${encodeURIComponent(folder)}`
    },
    async rows<Row extends object>(database: string, query: string, values: unknown[] = []) {
      const client = new Client({ ...at, database })
      client.on('error', () => {})
      await client.connect()
      try {
        return (await client.query<Row>(query, values)).rows
      } finally {
        await client.end()
      }
    },
    async crash(meanwhile) {
      await end('SIGKILL')
      await meanwhile()
      await start()
    },
    folder,
    end,
    start,
    async takeAll() {
      const taken: Client[] = []
      const takeOne = async (): Promise<void> => {
        const client = new Client(at)
        client.on('error', () => {})
        await client.connect()
        taken.push(client)
      }
      await takeOne()
      await taken[0]?.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname is not null',
      )
      try {
        for (;;) await takeOne()
      } catch {
        // There is none left.
      }
      return async () => {
        for (const client of taken) await client.end()
      }
    },
    async copy() {
      rmSync(copied, { recursive: true, force: true })
      const how = ['-D', copied, '-h', folder, '-U', 'sandlot', '--checkpoint=fast', '--no-sync']
      await run(join(programs, 'pg_basebackup'), how, options)
    },
    async failOver() {
      await end('SIGKILL')
      rmSync(data, { recursive: true })
      renameSync(copied, data)
      await start()
    },
    async stop() {
      await Promise.all(clients.map((db) => db.destroy()))
      await end('SIGINT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function whenReady(at: object, server: ChildProcess): Promise<void> {
  for (;;) {
    const client = new Client(at)
    // From a client that the starting server has refused.
    client.on('error', () => {})
    try {
      await client.connect()
      await client.end()
      return
    } catch (error) {
      if (server.exitCode !== null) throw new Error('PostgreSQL did not start.', { cause: error })
      await new Promise((resolve) => void setTimeout(resolve, 20))
    }
  }
}
