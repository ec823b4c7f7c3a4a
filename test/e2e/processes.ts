/** A whole Sandlot as processes, on data of its own: what a person starts with `./sandlot up`, minus the installing. */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { randomText } from '@sandlot/shared/base/ids'
import { nodeEnvironment } from '../config.ts'

const run = promisify(execFile)
/** Milliseconds for the first start of all processes on a machine with much else to do. */
const START_MS = 90_000
const root = new URL('../..', import.meta.url).pathname

export interface RunningSandlot {
  /** `http://127.0.0.1:<port>` */
  url: string
  /** The line a person opens first; carries the one-time setup token. */
  setupUrl: string
  data: string
  /** Everything both processes logged. */
  logs(): string
  /** Ids of this deployment's running containers. */
  containers(): Promise<string[]>
  /** Command lines of the processes in this deployment's containers. */
  processes(): Promise<string[]>
  /** End ai-agent as `signal` would, and start it again on the same data. */
  restartAgent(signal: NodeJS.Signals): Promise<void>
  agents: readonly Replica[]
  services: readonly (Replica & { url: string })[]
  stop(): Promise<void>
}

/** A checkout with its packages, whose sources the processes run from. */
export interface Version {
  root: string
  /** Further environment of its processes. */
  environment?: Record<string, string>
}
export const THIS_VERSION: Version = { root }

/** One process of several of its kind. */
export interface Replica {
  /** Its `SANDLOT_REPLICA`. */
  name: string
  /** Version of its next start. */
  version: Version
  /** False: it has ended. */
  runs(): boolean
  signal(signal: NodeJS.Signals): void
  /** Resolves when it has ended, as it would after this signal. */
  end(signal: NodeJS.Signals): Promise<void>
  /** Starts it again, where it has ended, with these variables more. Resolves when it works. */
  start(more?: Record<string, string>): Promise<void>
}

export interface SandlotOptions {
  /** Environment of ai-agent: the model, the engine. */
  agent?: Record<string, string>
  /** Fills the new data folder, before anything starts. */
  fill?: (data: string) => void
  /** PostgreSQL in place of files. */
  database?: string
  /** Number of agents and of services. Default 1. */
  replicas?: number
  /** Version to start. Default: this one. */
  version?: Version
  /** Further environment of the agent with this number, from 0. */
  agentOf?: (replica: number) => Record<string, string>
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** Only what a process needs to find programs: no setting of whoever runs the tests leaks in. */
function baseEnvironment(): Record<string, string> {
  return {
    ...nodeEnvironment(),
    PATH: `${root}node_modules/.bin:/usr/local/bin:/usr/bin:/bin`,
    HOME: tmpdir(),
    LANG: 'C.UTF-8',
  }
}

export async function startSandlot(options: SandlotOptions = {}): Promise<RunningSandlot> {
  const data = await mkdtemp(join(tmpdir(), 'sandlot-e2e-'))
  // A name by which `./sandlot test` knows what an interrupted run left, and removes it.
  const deployment = `test-${randomText(8)}`
  options.fill?.(data)
  await mkdir(join(data, 'keys'), { recursive: true, mode: 0o700 })
  const file = join(data, 'keys/deployment.json')
  const key = existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as { key: string }).key
    : randomBytes(32).toString('base64')
  await writeFile(file, JSON.stringify({ id: deployment, key }), { mode: 0o600 })
  const count = options.replicas ?? 1
  const numbers = Array.from({ length: count }, (_, number) => number)
  const ports = await Promise.all(numbers.map(freePort))
  let logs = ''

  const start = (
    { root: its, environment }: Version,
    name: string,
    entry: string,
    env: Record<string, string>,
  ): ChildProcess => {
    const child = spawn(`${its}node_modules/.bin/node`, ['--conditions=sandlot-source', `${its}${entry}`], {
      env: {
        ...baseEnvironment(),
        SANDLOT_DATA: data,
        SANDLOT_SANDBOX_POOL: '0',
        ...(options.database === undefined ? {} : { DATABASE_URL: options.database }),
        ...env,
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        logs += `${name} | ${line}\n`
      })
    }
    return child
  }
  /** `ready`: resolves when it works; throws where it has ended. */
  const replica = (
    name: string,
    run: (version: Version, more: Record<string, string>) => ChildProcess,
    ready: (before: string) => Promise<unknown>,
  ): Replica => {
    const version = options.version ?? THIS_VERSION
    let child = run(version, {})
    const runs = (): boolean => child.exitCode === null && child.signalCode === null
    return {
      name,
      version,
      runs,
      signal: (signal) => void child.kill(signal),
      end: (signal) => end(child, signal),
      async start(more = {}) {
        if (runs()) return
        const before = logs
        child = run(this.version, more)
        await ready(before)
      },
    }
  }
  const said = (name: string, words: RegExp, one: () => Replica | undefined) => (before: string) =>
    eventually(
      `${name} to say that it is ready`,
      () => {
        if (one()?.runs() === false) throw new Error(`${name} ended:\n${logs}`)
        const lines = logs.slice(before.length).split('\n')
        return lines.filter((line) => line.startsWith(`${name} |`)).find((line) => words.test(line))
      },
      START_MS,
    )
  const agents: Replica[] = numbers.map((number) => {
    const name = count === 1 ? 'ai-agent' : `replica-${number + 1}`
    return replica(
      name,
      (version, more) =>
        start(version, name, 'packages/ai-agent/src/main.ts', {
          PORT: String(ports[0]),
          ...(count === 1 ? {} : { SANDLOT_REPLICA: name }),
          ...options.agent,
          ...options.agentOf?.(number),
          ...more,
        }),
      said(name, /the agent is ready/, () => agents[number]),
    )
  })
  const services: (Replica & { url: string })[] = numbers.map((number) => {
    const name = count === 1 ? 'service' : `service-${number + 1}`
    const made = replica(
      name,
      (version, more) =>
        start(version, name, 'packages/service/src/main.ts', {
          PORT: String(ports[number]),
          SANDLOT_WEB_DIST: `${root}packages/web/dist`,
          ...more,
        }),
      said(name, /Sandlot is ready/, () => services[number]),
    )
    return Object.assign(made, { url: `http://127.0.0.1:${ports[number]}` })
  })
  const [agent, service] = [agents[0], services[0]]
  if (agent === undefined || service === undefined) throw new Error('no replicas')
  const { url } = service

  const setupUrl = await eventually(
    'Sandlot to say that it is ready',
    () => {
      if (!service.runs()) throw new Error(`service ended:\n${logs}`)
      return new RegExp(`^${service.name} \\| Sandlot is ready: (\\S+)`, 'm').exec(logs)?.[1]
    },
    START_MS,
  )
  const agentIsThere = (at = url): Promise<true> =>
    eventually('ai-agent to answer', async () => {
      if (!agent.runs()) throw new Error(`ai-agent ended:\n${logs}`)
      const answer = await fetch(`${at}/readyz`).catch(() => undefined)
      const body = (await answer?.json()) as { reasons: { part: string; ok: boolean }[] } | undefined
      return body?.reasons.some((reason) => reason.part === 'agent' && reason.ok) ? true : undefined
    })
  for (const one of services) await agentIsThere(one.url)

  const docker = async (...args: string[]): Promise<string[]> =>
    (await run('docker', args)).stdout.split('\n').filter((line) => line !== '')
  const filter = `label=sandlot.deployment=${deployment}`

  const containers = async (): Promise<string[]> => docker('ps', '-q', '--filter', filter)

  return {
    url,
    setupUrl,
    data,
    logs: () => logs,
    containers,
    async processes() {
      const ids = await containers()
      const lists = await Promise.all(ids.map((id) => docker('top', id, '-eo', 'pid,args')))
      return lists.flatMap((list) => list.slice(1)).map((line) => line.replace(/^\s*\d+\s+/, ''))
    },
    async restartAgent(signal) {
      await agent.end(signal)
      await agent.start()
      await agentIsThere()
    },
    agents,
    services,
    async stop() {
      await Promise.all([
        ...services.map((one) => one.end('SIGTERM')),
        ...agents.map((one) => one.end('SIGINT')),
      ])
      if (options.agent?.DOCKER_HOST === undefined) {
        const all = await docker('ps', '-aq', '--filter', filter)
        if (all.length > 0) await docker('rm', '-f', ...all)
        const volumes = await docker('volume', 'ls', '-q', '--filter', filter)
        if (volumes.length > 0) await docker('volume', 'rm', ...volumes)
      }
      await rm(data, { recursive: true, force: true })
    },
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  const timer = setTimeout(() => child.kill('SIGKILL'), 15_000)
  await ended
  clearTimeout(timer)
}

/** Ask again every 50 ms until there is an answer; fails after `ms`. Errors of `ask` other than refused connections end it. */
export async function eventually<T>(
  what: string,
  ask: () => T | undefined | Promise<T | undefined>,
  ms = 30_000,
): Promise<T> {
  const until = performance.now() + ms
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    if (performance.now() > until) throw new Error(`waited ${ms} ms in vain for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
