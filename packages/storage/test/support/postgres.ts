/**
 * A PostgreSQL of a test's own: a cluster in a temporary folder, reached only by a socket in it, gone afterwards. Debian's package
 * `postgresql` has the programs; where they are not, tests that need them say so and are left out.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { Kysely, PostgresDialect } from 'kysely'
import { Client, Pool } from 'pg'

const run = promisify(execFile)
const DEBIAN = '/usr/lib/postgresql'
/** PostgreSQL refuses to be root; Debian's `nobody` will do. */
const NOBODY = { uid: 65_534, gid: 65_534 }

/** The folder with `initdb` and `postgres`, undefined where there is none. */
export const postgresPrograms = [
  ...(process.env['PATH'] ?? '').split(delimiter),
  ...(existsSync(DEBIAN) ? readdirSync(DEBIAN).map((version) => join(DEBIAN, version, 'bin')) : []),
].find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')))

export interface Postgres {
  /** Connections of one more client; destroy it when it is over. `schema`: where its tables are; default `public`. */
  connect<Schema>(schema?: string): Kysely<Schema>
  /** The address of a new database, which begins as a copy of `like` where that is given. */
  database(name: string, like?: string): Promise<string>
  /** Kills the server as a crash would, runs `meanwhile`, and starts it again on the same data. */
  crash(meanwhile: () => Promise<void>): Promise<void>
  /** Ends the connections and the server, and removes everything. */
  stop(): Promise<void>
}

/** `durable`: it writes to the disk as one that keeps people's data does, for what is measured. */
export async function startPostgres(
  programs: string,
  { durable = false }: { durable?: boolean } = {},
): Promise<Postgres> {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-pg-'))
  const isRoot = process.getuid?.() === 0
  const as = isRoot ? NOBODY : {}
  if (isRoot) chownSync(folder, NOBODY.uid, NOBODY.gid)
  const data = join(folder, 'data')
  const options = { ...as, cwd: folder, env: { PATH: programs, LC_ALL: 'C' } }
  const made = ['-D', data, '-U', 'sandlot', '-A', 'trust', '--no-sync', '-E', 'UTF8']
  await run(join(programs, 'initdb'), made, options)
  const settings = [
    'listen_addresses=',
    ...(durable ? [] : ['fsync=off', 'max_connections=60', 'shared_buffers=16MB']),
  ]
  const at = { host: folder, user: 'sandlot', database: 'postgres' }
  const start = async () => {
    const server = spawn(
      join(programs, 'postgres'),
      ['-D', data, '-k', folder, ...settings.flatMap((one) => ['-c', one])],
      { ...options, stdio: 'ignore' },
    )
    await whenReady(at, server)
    return server
  }
  const end = async (server: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
    const ended = once(server, 'exit')
    server.kill(signal)
    await ended
  }
  let server = await start()
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
    async crash(meanwhile) {
      await end(server, 'SIGKILL')
      await meanwhile()
      server = await start()
    },
    async stop() {
      await Promise.all(clients.map((db) => db.destroy()))
      await end(server, 'SIGINT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function whenReady(at: object, server: { exitCode: number | null }): Promise<void> {
  for (;;) {
    const client = new Client(at)
    // Of one that the starting server has turned away.
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
