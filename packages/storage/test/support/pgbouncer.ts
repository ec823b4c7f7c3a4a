/** A pgbouncer of a test's own before a PostgreSQL of a test's own, with Debian's settings but for `mode`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { Client } from 'pg'

/** It refuses to be root. */
const NOBODY = { uid: 65_534, gid: 65_534 }
const PORT = 6432

/** Undefined: this machine has none. */
export const pgbouncer = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']
  .map((folder) => join(folder, 'pgbouncer'))
  .find((path) => existsSync(path))

export interface Pooler {
  /** The address of a database through it. */
  of(url: string): string
  /** Ends it and every connection through it, and starts it again. */
  restart(): Promise<void>
  stop(): Promise<void>
}

export async function startPgbouncer(
  program: string,
  {
    server,
    database,
    mode,
  }: { server: string; database: string; mode: 'session' | 'transaction' | 'statement' },
): Promise<Pooler> {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-pooler-'))
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(folder, NOBODY.uid, NOBODY.gid)
  const users = join(folder, 'users')
  writeFileSync(users, '"sandlot" ""\n')
  const settings = join(folder, 'pgbouncer.ini')
  writeFileSync(
    settings,
    `[databases]
${database} = host=${server} port=5432 dbname=${database}
[pgbouncer]
listen_port = ${PORT}
unix_socket_dir = ${folder}
auth_type = trust
auth_file = ${users}
pool_mode = ${mode}
`,
  )
  const of = (url: string): string => {
    const through = new URL(url)
    through.port = String(PORT)
    through.searchParams.set('host', folder)
    return through.href
  }
  let running: ChildProcess | undefined
  const start = async (): Promise<void> => {
    running = spawn(program, [settings], { ...(isRoot ? NOBODY : {}), cwd: folder, stdio: 'ignore' })
    await whenListening({ host: folder, port: PORT, user: 'sandlot', database }, running)
  }
  const end = async (): Promise<void> => {
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const ended = once(running, 'exit')
    running.kill('SIGTERM')
    await ended
  }
  await start()
  return {
    of,
    async restart() {
      await end()
      await start()
    },
    async stop() {
      await end()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function whenListening(at: object, running: ChildProcess): Promise<void> {
  for (;;) {
    const client = new Client(at)
    client.on('error', () => {})
    try {
      await client.connect()
      await client.end()
      return
    } catch (error) {
      if (running.exitCode !== null) throw new Error('pgbouncer did not start.', { cause: error })
      await new Promise((resolve) => void setTimeout(resolve, 20))
    }
  }
}
