/**
 * The composed deployment as people run it, with the real compose file: from nothing to an answer of the demo model, what the
 * operator's files and names do, and who reaches the engine. In an ordinary run Sandlot's own image is a thin one under a
 * tag of this test; a full run builds the real one, takes it down, and waits for the end of a lease.
 */
import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { campaign } from './campaign.ts'
import { ROOT } from './source-files.ts'
import { buildThinImage } from './thin-image.ts'

const run = promisify(execFile)
const MINUTE = 60_000

const composer = [['docker', 'compose'], ['docker-compose']].find(
  ([command = '', ...args]) => spawnSync(command, [...args, 'version'], { stdio: 'ignore' }).status === 0,
)
const has = (image: string): boolean =>
  spawnSync('docker', ['image', 'inspect', image], { stdio: 'ignore' }).status === 0
const base = ['debian:bookworm-slim', 'sandlot/base:bookworm'].find(has)
const reason =
  composer === undefined
    ? 'no docker compose'
    : base === undefined || !has('sandlot/sandbox:latest')
      ? 'no sandbox image'
      : undefined

const project = `sandlot-test-${randomBytes(3).toString('hex')}`
const deployment = `test-${randomBytes(4).toString('hex')}`
const thinImage = `sandlot/${project}:latest`
const METRICS_TOKEN = randomBytes(16).toString('hex')
/** Has the folder that the operator would fill, and the override file. */
const folder = mkdtempSync(join(tmpdir(), `${project}-`))
const environment: Record<string, string | undefined> = {
  PATH: process.env['PATH'],
  HOME: process.env['HOME'],
  SANDLOT_DEPLOYMENT: deployment,
  SANDLOT_METRICS_TOKEN: METRICS_TOKEN,
  SANDLOT_BACKUP_DIR: join(folder, 'backups'),
  SANDLOT_BACKUP_PASSPHRASE: 'correct horse battery staple',
  // Without a registry, the launcher has built this base image.
  BASE: base,
}

const OVERRIDE = join(folder, 'compose.override.yaml')
/** Everything else is as in the real file. */
function writeOperatorFiles(thinVolumes: string[]): void {
  // Each waits for the one before to be healthy, which is first asked after an interval.
  const quick = campaign.full ? {} : { healthcheck: { interval: '1s' } }
  const one = { ...(campaign.full ? {} : { image: thinImage }), volumes: thinVolumes }
  const services = {
    'prepare-data': one,
    'engine-gate': { ...one, ...quick },
    'ai-agent': { ...one, ...quick, volumes: [...thinVolumes, `${folder}/config:/config:ro`] },
    service: { ...one, ...quick },
    backup: one,
  }
  writeFileSync(OVERRIDE, JSON.stringify({ version: '3.8', services }))
  mkdirSync(join(folder, 'config'))
  writeFileSync(join(folder, 'config/sandlot.json'), JSON.stringify({ tools: { glob: { enabled: false } } }))
  writeFileSync(join(folder, 'config/agent.env'), 'DUFFEL_ACCESS_TOKEN=duffel_test_of_this_test\n')
  chmodSync(folder, 0o755)
}

async function compose(...args: string[]): Promise<void> {
  const [command = '', ...first] = composer ?? []
  await run(command, [...first, '-p', project, '-f', 'docker/compose.yaml', '-f', OVERRIDE, ...args], {
    cwd: ROOT,
    env: environment,
    maxBuffer: 2 ** 28,
  })
}

const docker = async (...args: string[]): Promise<string> =>
  (await run('docker', args, { maxBuffer: 2 ** 26 })).stdout.trim()

/** Name → state of this deployment's sandboxes. */
async function sandboxes(): Promise<Map<string, string>> {
  const format = ['--format', '{{.Names}} {{.State}}']
  const list = await docker('ps', '-a', '--filter', `label=sandlot.deployment=${deployment}`, ...format)
  return new Map(
    list
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' ', 2) as [string, string]),
  )
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

async function removeAll(): Promise<void> {
  await compose('down', '-v', '-t', '0')
  const left = [...(await sandboxes()).keys()]
  if (left.length > 0) await docker('rm', '-f', ...left)
  const volumes = await docker('volume', 'ls', '-q', '--filter', `label=sandlot.deployment=${deployment}`)
  if (volumes !== '') await docker('volume', 'rm', '-f', ...volumes.split('\n'))
}

afterAll(async () => {
  if (reason !== undefined) return
  await removeAll()
  if (has(thinImage)) await docker('rmi', thinImage)
  rmSync(folder, { recursive: true })
}, 5 * MINUTE)

/** Run in a container of ours: what each of these sockets says to somebody who connects. */
const KNOCK = `
const { connect } = require('node:net')
for (const path of ['/var/run/docker.sock', '/run/docker.sock', '/engine/run/engine/docker.sock']) {
  const socket = connect(path)
  socket.on('connect', () => { console.log(path, 'open'); socket.destroy() })
  socket.on('error', ({ code }) => console.log(path, code))
}`
/** Run in a container of ours: how opening each of these ends. */
const opener = (tries: readonly string[]): string => `
const { openSync } = require('node:fs')
for (const each of ${JSON.stringify(tries)}) {
  try { openSync(...each.split(' ')); console.log(each) } catch ({ code }) { console.log(each, code) }
}`
const ESCAPE = `
const { request } = require('node:http')
const body = JSON.stringify({ Image: 'sandlot/sandbox:latest', HostConfig: { Privileged: true, Binds: ['/:/host'] } })
request({ socketPath: '/engine/run/engine/docker.sock', path: '/v1.41/containers/create', method: 'POST',
  headers: { 'content-type': 'application/json' } }, ({ statusCode }) => { console.log(statusCode); process.exit() }).end(body)`

test.skipIf(reason)(
  `docker compose: from nothing to an answer, the operator’s files, who reaches the engine, a backup and back${campaign.full ? ', and nothing runs after the lease' : ''}${reason ? ` (skipped: ${reason})` : ''}`,
  async () => {
    const port = await freePort()
    environment['PORT'] = String(port)
    writeOperatorFiles(campaign.full ? [] : await buildThinImage(thinImage, base ?? '', folder))
    await compose('up', '-d', ...(campaign.full ? ['--build'] : []))
    const url = `http://127.0.0.1:${port}`
    await untilHealthy(url)

    const key = await signUp(url)
    const ask = (message: string): Promise<Response> => say(url, key, message)
    const answer = (await (await ask('run `cat /proc/1/comm; pwd`')).json()) as {
      sessionId: string
      toolResults: { text: string }[]
    }
    expect(answer.toolResults.map(({ text }) => text)).toEqual(['sbxd\n/workspace'])

    const knock = async (name: string): Promise<string[]> =>
      (await docker('exec', await container(name), 'node', '-e', KNOCK)).split('\n').toSorted()
    expect(await knock('service')).toEqual([
      '/engine/run/engine/docker.sock EACCES',
      '/run/docker.sock ENOENT',
      '/var/run/docker.sock ENOENT',
    ])
    expect(await knock('ai-agent')).toEqual([
      '/engine/run/engine/docker.sock open',
      '/run/docker.sock ENOENT',
      '/var/run/docker.sock ENOENT',
    ])
    expect(await docker('exec', await container('ai-agent'), 'node', '-e', ESCAPE)).toBe('403')

    // The service reads ai-agent's database, and nothing else of it; ai-agent nothing of the service's.
    const opened = async (name: string, tries: readonly string[]): Promise<string[]> =>
      (await docker('exec', await container(name), 'node', '-e', opener(tries))).split('\n')
    const refused = [
      '/data/sessions.db r+',
      '/data/sessions.db-wal r+',
      '/data/sessions.db-shm r+',
      '/data/sessions.db-journal w',
      '/data/run/x w',
      '/data/keys/deployment.json r',
    ]
    const own = ['/data/service/accounts.db r+', '/data/service/keys/service-cookies r']
    const unreachable = (tries: readonly string[]): string[] => tries.map((each) => `${each} EACCES`)
    expect(await opened('service', ['/data/sessions.db r', ...own])).toEqual(['/data/sessions.db r', ...own])
    expect(await opened('service', refused)).toEqual(unreachable(refused))
    expect(await opened('ai-agent', own)).toEqual(unreachable(own))
    const sessionId = answer.sessionId
    const saved = await fetch(`${url}/api/sessions/${sessionId}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    expect(saved.status).toBe(200)

    // The folder beside the compose file, and what is passed by name.
    const list = ['exec', await container('ai-agent'), 'node', '/app/ai-agent/dist/admin/tools.js'] // an older path
    const { tools, servers } = JSON.parse(await docker(...list)) as {
      tools: { id: string; available: boolean }[]
      servers: { name: string; state: string }[]
    }
    expect(tools.find(({ id }) => id === 'glob')?.available).toBe(false)
    expect(tools.find(({ id }) => id === 'flights-mcp::search-flights')?.available).toBe(true)
    expect(servers).toMatchObject([
      { name: 'flights-mcp', state: 'ready' },
      { name: 'google-calendar-mcp', state: 'unavailable' },
    ])

    // From outside of the container the service is another machine.
    const without = await fetch(`${url}/metrics`)
    expect([without.status, await without.text()]).toEqual([
      403,
      expect.stringContaining('Send SANDLOT_METRICS_TOKEN'),
    ])
    const metrics = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })
    expect(await metrics.text()).toContain('sandlot_agent_connected 1')

    // A backup while it runs, and a restore of it where there is nothing any more.
    await ask('run `touch kept`')
    await compose('run', '--rm', 'backup', 'backup')
    const [backup = ''] = readdirSync(join(folder, 'backups'))
    await removeAll()
    await compose('run', '--rm', 'backup', 'restore', `/backups/${backup}`)
    await compose('up', '-d')
    await untilHealthy(url)
    const back = (await (await ask('run `ls`')).json()) as { toolResults: { text: string }[] }
    expect(back.toolResults.map(({ text }) => text)).toEqual(['kept'])
    if (!campaign.full) return

    // A command is running, and one of the warm ones is paused.
    const working = ask('run `sleep 3000`').catch(() => undefined)
    await expect
      .poll(async () => [...(await sandboxes()).values()], { timeout: MINUTE })
      .toEqual(expect.arrayContaining(['running', 'paused']))
    await sleep(2_000)
    await compose('down')
    await working
    const left = await sandboxes()
    expect(left.size).toBeGreaterThan(1)
    // None is frozen: that would keep it from coming to its end.
    expect([...new Set(left.values())]).toEqual(['running'])
    await expect
      .poll(async () => [...new Set((await sandboxes()).values())], { timeout: 12 * MINUTE, interval: 5_000 })
      .toEqual(['exited'])
    const volumes = await docker('volume', 'ls', '-q', '--filter', `label=sandlot.deployment=${deployment}`)
    expect(volumes.split('\n')).toHaveLength(left.size)
  },
  60 * MINUTE,
)

test.skipIf(reason ?? !campaign.full)(
  'docker compose, profile postgres: two agents and two services, of which each agent is replaced while a command runs',
  async () => {
    await removeAll()
    const port = await freePort()
    const urls = [port, port + 1].map((each) => `http://127.0.0.1:${each}`)
    const [first = '', second = ''] = urls
    Object.assign(environment, {
      PORT: String(port),
      PORTS_TO: `-${port + 1}`,
      COMPOSE_PROFILES: 'postgres',
      DATABASE_URL_FILE: '/database/url',
    })
    const scale = ['--scale', 'ai-agent=2', '--scale', 'service=2']
    await compose('up', '-d', '--build', ...scale)
    for (const url of urls) await untilHealthy(url)
    const key = await signUp(first)
    const resultsOf = async (asked: Promise<Response>): Promise<string[]> => {
      const { toolResults } = (await (await asked).json()) as { toolResults: { text: string }[] }
      return toolResults.map(({ text }) => text)
    }
    expect(await resultsOf(say(first, key, 'run `touch kept; pwd`'))).toEqual(['/workspace'])

    const waiting = say(second, key, 'run `while [ ! -e stop ]; do sleep 0.2; done; echo stopped`')
    // The procedure of docs/postgresql.md for a new version.
    for (const agent of (await container('ai-agent')).split('\n')) {
      await docker('exec', agent, 'sh', '-c', 'node /app/ai-agent/dist/agent/drain.js "$HOSTNAME"')
      await docker('rm', '-f', agent)
      await compose('up', '-d', '--no-deps', '--no-recreate', '--scale', 'ai-agent=2', 'ai-agent')
      const states = async (): Promise<string[]> => {
        const ids = (await container('ai-agent')).split('\n')
        return (await docker('inspect', '-f', '{{.State.Health.Status}}', ...ids)).split('\n')
      }
      await expect.poll(states, { timeout: 2 * MINUTE, interval: 500 }).toEqual(['healthy', 'healthy'])
    }
    expect(await resultsOf(say(first, key, 'run `touch stop; ls`'))).toEqual(['kept\nstop'])
    expect(await resultsOf(waiting)).toEqual(['stopped'])

    await compose('down')
    const left = await docker('ps', '-aq', '--filter', `label=com.docker.compose.project=${project}`)
    expect(left).toBe('')
  },
  30 * MINUTE,
)

async function untilHealthy(url: string): Promise<void> {
  const healthy = async (): Promise<boolean> =>
    (await fetch(`${url}/readyz`).catch(() => undefined))?.ok === true
  await expect.poll(healthy, { timeout: 3 * MINUTE, interval: 500 }).toBe(true)
}

function post(
  url: string,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url, ...headers },
    body: JSON.stringify(body),
  })
}

/** Makes the first person, and answers an API key of theirs. */
async function signUp(url: string): Promise<string> {
  const services = (await container('service')).split('\n')
  const logs = await Promise.all(services.map((each) => docker('logs', each)))
  const token = /token=([a-z0-9]+)/.exec(logs.join('\n'))?.[1]
  const account = { name: 'Ada', email: 'ada@example.test', password: 'correct horse battery staple' }
  const signedIn = await post(url, '/api/setup', { token, ...account })
  const cookie = signedIn.headers
    .getSetCookie()
    .map((each) => each.split(';', 1)[0])
    .join('; ')
  const made = await post(url, '/api/keys', { name: 'test' }, { cookie })
  return ((await made.json()) as { key: string }).key
}

const say = (url: string, key: string, message: string): Promise<Response> =>
  post(url, '/api/chat', { message }, { authorization: `Bearer ${key}` })

async function container(name: string): Promise<string> {
  const filters = ['project', 'service'].map((label) => `label=com.docker.compose.${label}=`)
  return docker('ps', '-q', '--filter', `${filters[0]}${project}`, '--filter', `${filters[1]}${name}`)
}
