/**
 * The composed deployment as people run it: built from this checkout, one prompt of the demo model through the service,
 * who reaches the engine, and what is left of it when it is taken down. Only in a full run: it builds the image, and
 * waits for the end of a lease.
 */
import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { campaign } from './campaign.ts'
import { ROOT } from './source-files.ts'

const run = promisify(execFile)
const MINUTE = 60_000

const composer = [['docker', 'compose'], ['docker-compose']].find(
  ([command = '', ...args]) => spawnSync(command, [...args, 'version'], { stdio: 'ignore' }).status === 0,
)
const has = (image: string): boolean =>
  spawnSync('docker', ['image', 'inspect', image], { stdio: 'ignore' }).status === 0
const reason = !campaign.full
  ? 'only in a full run'
  : composer === undefined
    ? 'no docker compose'
    : undefined

const project = `sandlot-test-${randomBytes(3).toString('hex')}`
const deployment = `test-${randomBytes(4).toString('hex')}`
const environment: Record<string, string | undefined> = {
  PATH: process.env['PATH'],
  HOME: process.env['HOME'],
  SANDLOT_DEPLOYMENT: deployment,
  // Where no registry gives Debian's image the launcher has made one.
  ...(!has('debian:bookworm-slim') && has('sandlot/base:bookworm') ? { BASE: 'sandlot/base:bookworm' } : {}),
}

async function compose(...args: string[]): Promise<void> {
  const [command = '', ...first] = composer ?? []
  await run(command, [...first, '-p', project, '-f', 'docker/compose.yaml', ...args], {
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

afterAll(async () => {
  if (reason !== undefined) return
  await compose('down', '-v')
  const left = [...(await sandboxes()).keys()]
  if (left.length > 0) await docker('rm', '-f', ...left)
  const volumes = await docker('volume', 'ls', '-q', '--filter', `label=sandlot.deployment=${deployment}`)
  if (volumes !== '') await docker('volume', 'rm', '-f', ...volumes.split('\n'))
}, 5 * MINUTE)

/** Run in a container of ours: what each of these sockets says to somebody who connects. */
const KNOCK = `
const { connect } = require('node:net')
for (const path of ['/var/run/docker.sock', '/run/docker.sock', '/engine/run/engine/docker.sock']) {
  const socket = connect(path)
  socket.on('connect', () => { console.log(path, 'open'); socket.destroy() })
  socket.on('error', ({ code }) => console.log(path, code))
}`
const ESCAPE = `
const { request } = require('node:http')
const body = JSON.stringify({ Image: 'sandlot/sandbox:latest', HostConfig: { Privileged: true, Binds: ['/:/host'] } })
request({ socketPath: '/engine/run/engine/docker.sock', path: '/v1.41/containers/create', method: 'POST',
  headers: { 'content-type': 'application/json' } }, ({ statusCode }) => { console.log(statusCode); process.exit() }).end(body)`

test.skipIf(reason)(
  `docker compose: up, a prompt, who reaches the engine, down, and nothing runs after the lease${reason ? ` (skipped: ${reason})` : ''}`,
  async () => {
    const port = await freePort()
    environment['PORT'] = String(port)
    await compose('up', '-d', '--build')
    const url = `http://127.0.0.1:${port}`
    const healthy = async (): Promise<boolean> =>
      (await fetch(`${url}/readyz`).catch(() => undefined))?.ok === true
    await expect.poll(healthy, { timeout: 3 * MINUTE, interval: 500 }).toBe(true)

    const post = async (path: string, body: unknown, headers: Record<string, string>): Promise<Response> =>
      fetch(url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: url, ...headers },
        body: JSON.stringify(body),
      })
    const token = /token=([a-z0-9]+)/.exec(await docker('logs', await container('service')))?.[1]
    const account = { name: 'Ada', email: 'ada@example.test', password: 'correct horse battery staple' }
    const signedIn = await post('/api/setup', { token, ...account }, {})
    const cookie = signedIn.headers
      .getSetCookie()
      .map((each) => each.split(';', 1)[0])
      .join('; ')
    const { key } = (await (await post('/api/keys', { name: 'test' }, { cookie })).json()) as { key: string }
    const ask = (message: string): Promise<Response> =>
      post('/api/chat', { message }, { authorization: `Bearer ${key}` })
    const answer = (await (await ask('run `cat /proc/1/comm; pwd`')).json()) as {
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

async function container(name: string): Promise<string> {
  const filters = ['project', 'service'].map((label) => `label=com.docker.compose.${label}=`)
  return docker('ps', '-q', '--filter', `${filters[0]}${project}`, '--filter', `${filters[1]}${name}`)
}
