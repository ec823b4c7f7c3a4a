/** Sandlot as `./sandlot up` runs it: the service and the agent as processes, on a data folder of their own. No engine. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { newId } from '@sandlot/shared/base/ids'
import { openSessionStore } from '@sandlot/storage/store/open'
import { WebSocket } from 'ws'
import { LOCAL_PROCESS, nodeEnvironment } from '../../../test/config.ts'
import { end } from '../../../test/bench/program.ts'
import { nodeOptions } from '../../cli/src/processes/children.ts'
import { makeUsage } from '../../storage/bench/usage.ts'

const MAINS = {
  service: fileURLToPath(new URL('../src/main.ts', import.meta.url)),
  agent: fileURLToPath(new URL('../../ai-agent/src/main.ts', import.meta.url)),
}
const SANDBOX = fileURLToPath(new URL('../../../docker/sandbox', import.meta.url))
const COLLECT = new URL('collect.ts', import.meta.url).href
/** A user may send 60 prompts a minute: every round of a goal has one for each socket. */
export const SOCKETS_PER_USER = 10
/** Until a process has collected. */
const COLLECT_MS = 1_500

export interface Person {
  id: string
  headers: { cookie: string; origin: string }
}

/** A figure of the services and one of the agents. */
export interface PerProcess {
  service: number
  agent: number
}

export interface Deployment {
  readonly origin: string
  /** The person of the socket with this number. */
  personOf(socket: number): Person
  /** A chat with this log, of the first person. Only before `start`. */
  seed(log: readonly SessionEvent[], person?: Person): Promise<string>
  /** Starts the agents. */
  start(): Promise<void>
  /** Its processes, each with its name of `sessions.replicas` where it is an agent of several. */
  readonly processes: readonly { pid: number; replica?: string }[]
  socket(person: Person): Promise<WebSocket>
  get(path: string, person?: Person): Promise<Response>
  post(path: string, body: object, person?: Person): Promise<Response>
  delete(path: string, person?: Person): Promise<Response>
  /** Milliseconds for which each process was held since this was asked last. */
  loopDelays(): Promise<PerProcess>
  /** Memory of both processes, in bytes, without garbage. */
  memory(): Promise<number>
  /** Resident memory, in bytes, with garbage. */
  resident(): PerProcess
  /** CPU time, in milliseconds. */
  cpu(): PerProcess
}

/**
 * Its processes and its folder go with `stack`. `answers`: that were counted in a year, in a file.
 * `database`: PostgreSQL in place of files. `replicas`: so many agents and services, of which people
 * use one each.
 */
export async function openDeployment(
  baseUrl: string,
  {
    sockets,
    answers = 0,
    database,
    replicas = 1,
  }: { sockets: number; answers?: number; database?: string; replicas?: number },
  stack: AsyncDisposableStack,
): Promise<Deployment> {
  await promisify(execFile)('make', ['-s', '-C', SANDBOX])
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-bench-'))
  const children: (ChildProcess & { role: keyof PerProcess; replica?: string })[] = []
  stack.defer(async () => {
    // Some of several are dead, and the others may wait for their work.
    for (const child of children.toReversed()) await end(child, replicas > 1 ? 'SIGKILL' : 'SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  })
  const run = (role: keyof PerProcess, env: Record<string, string>, replica?: string): ChildProcess => {
    const started = spawn(
      process.execPath,
      ['--expose-gc', `--import=${COLLECT}`, '--conditions=sandlot-source', MAINS[role]],
      {
        env: {
          ...nodeEnvironment(),
          NODE_OPTIONS: nodeOptions(),
          SANDLOT_DATA: folder,
          LOG_LEVEL: 'warn',
          ...(database === undefined ? {} : { DATABASE_URL: database }),
          ...env,
        },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    children.push(Object.assign(started, { role, replica }))
    return started
  }
  const startService = async (): Promise<URL> => {
    const service = run('service', { PORT: '0' })
    const [line] = (await once(service.stdout ?? service, 'data')) as [Buffer]
    return new URL(String(line).replace('Sandlot is ready: ', '').trim())
  }
  const { origin, searchParams } = await startService()
  const origins = [origin]
  const people = await makePeople(
    origin,
    searchParams.get('token') ?? '',
    Math.ceil(sockets / SOCKETS_PER_USER),
  )
  const [first] = people
  if (first === undefined) throw new Error('there are no people')
  const sessions = database ?? join(folder, 'sessions.db')
  if (answers > 0)
    await makeUsage(
      sessions,
      people.map(({ id }) => id),
      answers,
    )
  const store = await openSessionStore(sessions)
  const sums = (figure: (pid: number) => number): PerProcess => {
    const sum = { service: 0, agent: 0 }
    for (const { role, pid = 0 } of children) sum[role] += figure(pid)
    return sum
  }
  const request = (path: string, person: Person, init: RequestInit = {}): Promise<Response> =>
    fetch(`${origin}${path}`, {
      ...init,
      headers: { ...person.headers, 'content-type': 'application/json' },
    })

  return {
    origin,
    personOf: (socket) => people[Math.floor(socket / SOCKETS_PER_USER)] ?? first,
    async seed(log, person = first) {
      const id = newId('s')
      await store.sessions.create({ id, userId: person.id, cwd: '/workspace', mode: 'yolo', at: 1 })
      for (let from = 0; from < log.length; from += 500)
        await store.log.append(id, log.slice(from, from + 500))
      return id
    },
    async start() {
      await store.close()
      while (origins.length < replicas) origins.push((await startService()).origin)
      for (let number = 1; number <= replicas; number++) {
        const replica = replicas === 1 ? undefined : `replica-${number}`
        const environment = {
          OPENAI_BASE_URL: baseUrl,
          OPENAI_API_KEY: 'none',
          OPENAI_MODEL: 'bench',
          ...LOCAL_PROCESS,
          SANDLOT_SANDBOX_POOL: '0',
          ...(replica === undefined ? {} : { SANDLOT_REPLICA: replica }),
        }
        run('agent', environment, replica)
      }
      for (const one of origins)
        while ((await fetch(`${one}/metrics`).then((it) => it.text())).includes('sandlot_agent_connected 0'))
          await sleep(50)
    },
    get processes() {
      return children.map(({ pid = 0, replica }) => ({ pid, replica }))
    },
    async socket(person) {
      const at = origins[people.indexOf(person) % origins.length] ?? origin
      const socket = new WebSocket(`${at.replace('http', 'ws')}/ws`, {
        headers: { ...person.headers, origin: at },
        perMessageDeflate: false,
      })
      await once(socket, 'open')
      return socket
    },
    get: (path, person = first) => request(path, person),
    post: (path, body, person = first) =>
      request(path, person, { method: 'POST', body: JSON.stringify(body) }),
    delete: (path, person = first) => request(path, person, { method: 'DELETE' }),
    async loopDelays() {
      const text = await (await fetch(`${origin}/metrics`)).text()
      const of = (name: string): number =>
        Number(
          new RegExp(`^sandlot_event_loop_delay_seconds\\{process="${name}",quantile="1"\\} (.*)$`, 'm').exec(
            text,
          )?.[1] ?? Number.NaN,
        ) * 1_000
      return { service: of('service'), agent: of('agent') }
    },
    async memory() {
      // Twice: what finalizers let go of is collected with the second.
      for (let time = 0; time < 2; time++) {
        for (const child of children) child.kill('SIGURG')
        await sleep(COLLECT_MS)
      }
      const { service, agent } = sums(residentOf)
      return service + agent
    },
    resident: () => sums(residentOf),
    cpu: () => sums(cpuOf),
  }
}

async function makePeople(origin: string, token: string, count: number): Promise<Person[]> {
  const post = async (path: string, body: object, cookie = ''): Promise<[Response, { id: string }]> => {
    const answer = await fetch(`${origin}/api${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin, cookie },
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return [answer, (await answer.json()) as { id: string }]
  }
  const cookieOf = (answer: Response): string =>
    answer.headers
      .getSetCookie()
      .map((cookie) => cookie.split(';', 1)[0])
      .join('; ')
  const password = 'correct horse battery staple'
  const people: Person[] = []
  for (let n = 0; n < count; n++) {
    const account = { name: `Reader ${n}`, email: `reader${n}@example.org`, password }
    const [administrator] = people
    if (administrator !== undefined)
      await post('/users', { ...account, role: 'member' }, administrator.headers.cookie)
    const [answer, { id }] =
      administrator === undefined
        ? await post('/setup', { token, ...account })
        : await post('/sign-in', { email: account.email, password })
    people.push({ id, headers: { cookie: cookieOf(answer), origin } })
  }
  return people
}

/** CPU time of a process, in milliseconds: of each of its threads by the scheduler's own count. */
export function cpuOf(pid: number): number {
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => {
    const [nanoseconds] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')
    return sum + Number(nanoseconds) / 1e6
  }, 0)
}

function residentOf(pid: number): number {
  const [, kilobytes] = /^Rss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}
