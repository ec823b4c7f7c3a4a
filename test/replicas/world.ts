/** Several ai-agents and services as processes on one PostgreSQL and one engine, each agent behind proxies of its own. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type FakeAnswer,
  type FakeProvider,
  type RecordedRequest,
  startFakeProvider,
  textAnswer,
  toolCalls,
} from '../../packages/ai-agent/test/support/fake-provider.ts'
import { testConfig } from '../../packages/sandbox/test/support/config.ts'
import { type Postgres, startPostgres } from '../../packages/storage/test/support/postgres.ts'
import { type RunningSandlot, type Version, startSandlot } from '../e2e/processes.ts'
import { Client } from './client.ts'
import { type Proxy, startProxy } from './proxy.ts'

const SOCKET = '.s.PGSQL.5432'
const NAME = 'sandlot'
const DISK = '400m'
const PASSWORD = 'correct horse battery staple'
const MOST_REQUESTS = 10_000

/** Proxy between an agent and its engine, or the API server of its cluster. */
type EngineProxy = Pick<Proxy, 'restore' | 'holdAnswerTo' | 'close'>

/** Opens the proxy of the agent with this number; `environment` makes that agent use it. */
export type Engines = (
  number: number,
  folder: string,
) => Promise<{ engine: EngineProxy; environment: Record<string, string> }>

const dockerEngines: Engines = async (_number, folder) => {
  const engine = (testConfig.dockerHost ?? 'unix:///var/run/docker.sock').replace(/^unix:\/\//, '')
  const path = join(folder, 'docker.sock')
  return { engine: await startProxy(path, engine), environment: { DOCKER_HOST: `unix://${path}` } }
}

export interface World {
  sandlot: RunningSandlot
  postgres: Postgres
  /** Proxies of each agent, by its number. */
  proxies: readonly { database: Proxy; engine: EngineProxy }[]
  /** A new person. */
  join(): Promise<Client & { id: string }>
  /** Rows of the database itself, past all proxies. */
  rows<Row extends object>(query: string, values?: unknown[]): Promise<Row[]>
  /** Address of the database itself. */
  database: string
  /** Leaves no byte on the database's disk. What it returns makes room again. */
  fillDisk(): () => void
  /** The number of the agent that owns this person; undefined: none that lives. */
  ownerOf(userId: string): Promise<number | undefined>
  /** Everything runs and reaches everything, whatever was done to it. */
  mend(): Promise<void>
}

export async function openWorld(
  programs: string,
  replicas: number,
  stack: AsyncDisposableStack,
  { version, engines = dockerEngines }: { version?: Version; engines?: Engines } = {},
): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-replicas-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const disk = join(folder, 'disk')
  mkdirSync(disk)
  for (const one of [folder, disk]) chmodSync(one, 0o755)
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK}`, 'sandlot-test', disk])
  stack.defer(() => void execFileSync('umount', ['-l', disk]))
  chmodSync(disk, 0o777)
  const postgres = await startPostgres(programs, { within: disk })
  stack.defer(() => postgres.stop())
  const database = await postgres.database(NAME)
  const provider = await startProvider()
  stack.defer(() => provider.close())

  const proxies = await Promise.all(
    Array.from({ length: replicas }, async (_, number) => {
      const own = join(folder, String(number))
      mkdirSync(own)
      const database = await startProxy(join(own, SOCKET), join(postgres.folder, SOCKET))
      const { engine, environment } = await engines(number, own)
      for (const proxy of [database, engine]) stack.defer(() => proxy.close())
      return { database, engine, environment, folder: own }
    }),
  )
  const sandlot = await startSandlot({
    database,
    replicas,
    version,
    agent: {
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_API_KEY: 'sk-test-canary',
      OPENAI_MODEL: 'scripted',
    },
    agentOf: (number) => ({
      DATABASE_URL: addressBehind(database, proxies[number]?.folder ?? ''),
      ...proxies[number]?.environment,
    }),
  })
  stack.defer(() => sandlot.stop())

  const joinAs = people(sandlot)
  return {
    sandlot,
    postgres,
    proxies,
    database,
    rows: (query, values) => postgres.rows(NAME, query, values),
    join: joinAs,
    fillDisk() {
      const { bavail, bsize } = statfsSync(disk)
      const ballast = join(disk, 'ballast')
      writeFileSync(ballast, new Uint8Array(bavail * bsize))
      return () => rmSync(ballast)
    },
    async ownerOf(userId) {
      if (replicas === 1) return 0
      const [row] = await postgres.rows<{ replica_id: string }>(NAME, OWNER, [userId])
      const place = sandlot.agents.findIndex(({ name }) => name === row?.replica_id)
      return sandlot.agents[place]?.runs() === true ? place : undefined
    },
    async mend() {
      for (const { database: one, engine: other } of proxies)
        for (const proxy of [one, other]) proxy.restore()
      await postgres.start()
      const drained = await postgres.rows<{ id: string }>(
        NAME,
        'select id from sessions.replicas where draining = 1',
      )
      for (const each of [...sandlot.agents, ...sandlot.services]) {
        each.signal('SIGCONT')
        if (drained.some(({ id }) => id === each.name)) await each.end('SIGTERM')
        await each.start()
      }
    },
  }
}

/** A replica lives while its last sign of life is at most seven seconds old. */
const OWNER = `
  select replica_id from sessions.owners join sessions.replicas on replicas.id = owners.replica_id
  where user_id = $1 and heartbeat_at > extract(epoch from clock_timestamp()) * 1000 - 7000
`

function addressBehind(database: string, folder: string): string {
  const address = new URL(database)
  address.searchParams.set('host', folder)
  return address.href
}

/** Does what the last message says: `run <command>`, else it says hello. */
export async function startProvider(): Promise<FakeProvider> {
  let calls = 0
  const answer = ({ body }: RecordedRequest): FakeAnswer => {
    const last = body.messages.at(-1)
    if (last?.role !== 'user') return textAnswer('It is done.')
    const text = typeof last.content === 'string' ? last.content : JSON.stringify(last.content)
    const command = /^run (.*)$/ms.exec(text)?.[1]
    if (command === undefined) return textAnswer('Hello.')
    return toolCalls([{ id: `call_${++calls}`, name: 'run_shell_command', args: { command } }])
  }
  return startFakeProvider(Array.from({ length: MOST_REQUESTS }, () => answer))
}

/** Makes people, of whom the first is the administrator. */
export function people({ services, setupUrl }: RunningSandlot): World['join'] {
  const [service] = services
  const addresses = services.map(({ url }) => url)
  let administrator = ''
  let made = 0
  const post = async (path: string, body: object, cookie = ''): Promise<{ id: string; cookie: string }> => {
    const origin = service?.url ?? ''
    const headers = { 'content-type': 'application/json', origin, cookie }
    const answer = await fetch(`${origin}/api${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    const cookies = answer.headers.getSetCookie().map((one) => one.split(';', 1)[0])
    return { ...((await answer.json()) as { id: string }), cookie: cookies.join('; ') }
  }
  return async () => {
    const account = { name: `Person ${++made}`, email: `person${made}@example.test`, password: PASSWORD }
    const token = new URL(setupUrl).searchParams.get('token')
    if (administrator !== '') await post('/users', { ...account, role: 'member' }, administrator)
    const { id, cookie } =
      administrator === ''
        ? await post('/setup', { token, ...account })
        : await post('/sign-in', { email: account.email, password: PASSWORD })
    if (administrator === '') administrator = cookie
    return Object.assign(new Client(addresses, { id, cookie }), { id })
  }
}
