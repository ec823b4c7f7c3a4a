/** The service as a process: the line that people and the launcher wait for, and how it ends. */
import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { readiness } from '@sandlot/shared/account/api'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nodeEnvironment } from '../../../test/config.ts'
import { waitFor } from './support/harness.ts'
import { ScriptedAgent } from './support/scripted-agent.ts'

const MAIN = join(import.meta.dirname, '../src/main.ts')
let folder: string
const started: ChildProcess[] = []

interface Running {
  child: ChildProcess
  output(): string
  /** The first line on stdout that fits. */
  line(pattern: RegExp): Promise<string>
  ended: Promise<number | null>
}

function start(env: Record<string, string>): Running {
  const child = spawn(process.execPath, ['--conditions=sandlot-source', MAIN], {
    env: { ...nodeEnvironment(), SANDLOT_DATA: folder, LOG_LEVEL: 'info', PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  started.push(child)
  let text = ''
  const heard = new Set<() => void>()
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (piece: Buffer) => {
      text += piece.toString()
      for (const tell of heard) tell()
    })
  }
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  return {
    child,
    ended,
    output: () => text,
    line: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const line = text.split('\n').find((one) => pattern.test(one))
          if (line !== undefined) resolve(line)
        }
        heard.add(look)
        void ended.then(() => reject(new Error(`it ended: ${text}`)))
        look()
      }),
  }
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-main-'))
})

afterEach(async () => {
  for (const child of started.splice(0)) if (child.exitCode === null) child.kill('SIGKILL')
  await rm(folder, { recursive: true })
})

test('prints its address, without an agent too, and stops gracefully', async () => {
  const service = start({})
  const line = await service.line(/^Sandlot is ready: /)
  const url = /^Sandlot is ready: (http:\/\/127\.0\.0\.1:\d+)\/setup\?token=[0-9a-z]{50}$/.exec(line)?.[1]
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  expect((await fetch(`${url}/readyz`)).status).toBe(503)
  service.child.kill('SIGTERM')
  expect(await service.ended).toBe(0)
  expect(service.output()).toContain('"msg":"stopped"')
})

test('a port that is taken and a wrong setting end it with a plain message', async () => {
  const first = start({})
  const port = new URL((await first.line(/^Sandlot is ready: /)).slice('Sandlot is ready: '.length)).port
  // Only one service at a time may use the same data, whatever the port.
  const second = start({ PORT: port, SANDLOT_DATA: join(folder, 'another') })
  const wrong = start({ PORT: 'many', SANDLOT_PUBLIK_URL: 'x' })
  expect(await second.ended).toBe(1)
  expect(second.output()).toMatch(/Another program listens there; stop it, or set PORT\./)
  expect(await wrong.ended).toBe(1)
  expect(wrong.output()).toMatch(/PORT: must be a whole number/)
  expect(wrong.output()).toMatch(/did you mean SANDLOT_PUBLIC_URL\?/)
  first.child.kill('SIGINT')
  expect(await first.ended).toBe(0)
})

test('a disk that refuses writes: /readyz and sign-in report it, until the disk accepts them again', async () => {
  const service = start({})
  const line = await service.line(/^Sandlot is ready: /)
  const { origin, searchParams } = new URL(line.slice('Sandlot is ready: '.length))
  const post = async (path: string, body: object): Promise<{ status: number; body: unknown }> => {
    const answer = await fetch(`${origin}/api${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin },
      body: JSON.stringify(body),
    })
    return { status: answer.status, body: await answer.json() }
  }
  const account = { email: 'ada@example.org', password: 'correct horse battery' }
  const made = await post('/setup', { token: searchParams.get('token'), name: 'Ada', ...account })
  expect(made.status).toBe(200)
  const accounts = async (): Promise<unknown> => {
    const said = readiness.parse(await (await fetch(`${origin}/readyz`)).json())
    return said.reasons.find(({ part }) => part === 'accounts')
  }
  const limitFiles = (bytes: string): unknown =>
    execFileSync('prlimit', ['--pid', String(service.child.pid), `--fsize=${bytes}:unlimited`])
  limitFiles('0')
  const words =
    'Signing in is not possible: the disk of the server refuses writes. Its administrator must check it.'
  expect(await post('/sign-in', account)).toMatchObject({
    status: 503,
    body: { code: 'not_ready', message: words },
  })
  expect(await accounts()).toEqual({ part: 'accounts', ok: false, message: words })
  limitFiles('unlimited')
  expect(await accounts()).toMatchObject({ part: 'accounts', ok: true })
  expect((await post('/sign-in', account)).status).toBe(200)
})

test('damaged accounts and a disk that refuses the first file give one sentence, without a stack', async () => {
  await writeFile(join(folder, 'accounts.db'), 'not a database, whatever it is called'.repeat(200))
  const damaged = start({})
  expect(await damaged.ended).toBe(1)
  expect(damaged.output()).toMatch(/^sandlot service: .*accounts\.db.*\n$/)
  const full = spawn('prlimit', ['--fsize=0', process.execPath, '--conditions=sandlot-source', MAIN], {
    env: { ...nodeEnvironment(), SANDLOT_DATA: join(folder, 'new'), PORT: '0' },
    stdio: 'pipe',
  })
  expect(await text(full.stderr)).toMatch(
    /^sandlot service: .*cannot be read or written: its disk refuses it.*\n$/,
  )
})

test('behind a proxy it reads discovery through it, and its agent without', async () => {
  const asked: string[] = []
  const proxy = createServer((request, response) => {
    asked.push(request.url ?? '')
    response.writeHead(502).end()
  })
  proxy.on('connect', (request, socket) => {
    asked.push(request.url ?? '')
    socket.end('HTTP/1.1 502 No\r\n\r\n')
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const socket = join(folder, 'run', 'agent.sock')
  const agent = await ScriptedAgent.start(join(folder, 'sessions.db'), socket)
  const provider = { id: 'idp', name: 'IdP', issuer: 'https://idp.example', clientId: 'c', clientSecret: 's' }
  const service = start({
    HTTPS_PROXY: url,
    HTTP_PROXY: url,
    NODE_USE_ENV_PROXY: '1',
    SANDLOT_AGENT_URL: `ws+unix://${socket}:/acp`,
    SANDLOT_OIDC: JSON.stringify([provider]),
  })
  const line = await service.line(/^Sandlot is ready: /)
  const { origin } = new URL(line.slice('Sandlot is ready: '.length))
  const reasons = async () => readiness.parse(await (await fetch(`${origin}/readyz`)).json()).reasons
  await waitFor(async () => (await reasons()).some(({ part, ok }) => part === 'agent' && ok))
  await waitFor(() => asked.length > 0)
  expect(new Set(asked)).toEqual(new Set(['idp.example:443']))
  await agent.close()
  proxy.close()
})
