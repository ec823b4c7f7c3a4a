/**
 * The whole way of a connection on this machine: a program, the listener of a real sbxd (a plain process, no Docker),
 * the stream, the proxy, a server.
 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'

import { extent } from '../../../test/campaign.ts'
import { createLocalProcessBackend } from '../src/backends/local-process.ts'
import type { SandboxBackend } from '../src/backend.ts'
import type { ConnectedSandbox } from '../src/client.ts'
import type { EgressOptions } from '../src/egress/egress.ts'
import { DEFAULT_LIMITS } from '../src/limits.ts'
import { buildSbxd } from './build-sbxd.ts'
import { Bench, newId, sh } from './contract/harness.ts'
import {
  type Handler,
  type Origin,
  startOrigin,
  startTcp,
  type WatchedEgress,
  watchedEgress,
} from './egress-fixture.ts'

vi.setConfig({ testTimeout: 120_000 })
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const WAIT = { timeout: 60_000, interval: 20 }

let directory: string
let backend: SandboxBackend
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sandlot-egress-'))
  backend = createLocalProcessBackend({
    sbxd: await buildSbxd(directory),
    directory: join(directory, 'volumes'),
  })
}, 120_000)
afterAll(async () => {
  await backend.close()
  await rm(directory, { recursive: true, force: true })
})

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

interface Way {
  sandbox: ConnectedSandbox
  bench: Bench
  egress: WatchedEgress
  /** Of the listener. */
  port: number
}

async function open(options: Partial<EgressOptions>): Promise<Way> {
  const slot = randomBytes(4).toString('hex')
  const spec = {
    name: `sbx-test-${slot}-owner-1`,
    slot,
    uid: 30_000,
    volume: `vol-${slot}`,
    image: 'none',
    limits: DEFAULT_LIMITS,
    labels: {},
  }
  const fixture = { backend, spec: () => spec, dispose: async () => {} }
  const { bench, sandbox } = await Bench.start(fixture)
  cleanups.push(() => bench.remove())
  const egress = watchedEgress(options)
  await sandbox.openEgress(egress.forUser('ann'))
  const { out } = await sh(sandbox, 'echo ${HTTP_PROXY##*:}')
  return { sandbox, bench, egress, port: Number(out) }
}

async function origin(handler: Handler): Promise<Origin> {
  const made = await startOrigin(handler)
  cleanups.push(() => made.close())
  return made
}

async function tcp(handler: (socket: Socket) => void): Promise<Origin> {
  const made = await startTcp(handler)
  cleanups.push(() => made.close())
  return made
}

interface Question {
  url: string
  method?: string
  headers?: Record<string, string>
  /** Sent as the body, in chunks unless the headers give a length. */
  file?: string
}

/** A program that goes through the proxy of its environment, with nothing but Node. */
const CLIENT = `
const { createReadStream } = require('node:fs')
const { request } = require('node:http')
const proxy = new URL(process.env.HTTP_PROXY)
const credentials = Buffer.from(proxy.username + ':' + proxy.password).toString('base64')
async function ask({ url, method = 'GET', headers = {}, file }) {
  const there = new URL(url)
  const secure = there.protocol === 'https:'
  const host = secure ? there.host + ':443' : there.host
  const asked = request({
    host: proxy.hostname, port: proxy.port, agent: false, method: secure ? 'CONNECT' : method, path: secure ? host : url,
    headers: { Host: host, 'Proxy-Authorization': 'Basic ' + credentials, ...headers },
  })
  return new Promise((resolve, reject) => {
    asked.on('error', reject)
    asked.on('connect', (answer, socket) => { socket.destroy(); resolve({ status: answer.statusCode, body: '' }) })
    asked.on('response', async (answer) => {
      let body = ''
      for await (const chunk of answer) body += chunk
      resolve({ status: answer.statusCode, body })
    })
    const send = () => file ? createReadStream(file).pipe(asked) : asked.end()
    if (headers.Expect) asked.on('continue', send).flushHeaders()
    else send()
  })
}
async function main() {
  const answers = []
  for (const question of JSON.parse(process.argv[2])) answers.push(await ask(question))
  console.log(JSON.stringify(answers))
}
main()`

async function ask(sandbox: ConnectedSandbox, questions: readonly Question[], id = newId()) {
  const command = [process.execPath, '-e', CLIENT, '-', JSON.stringify(questions)]
  const { out, err, refusedHosts } = await sh(sandbox, command, { id })
  expect(err).toBe('')
  return { answers: JSON.parse(out) as { status: number; body: string }[], refusedHosts }
}

/** Say these bytes to the proxy and read until it closes. */
async function say(port: number, text: string | Buffer, options: { end?: boolean } = {}): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  const over = new Promise<void>((resolve) => {
    socket.once('error', (error) => {
      chunks.push(Buffer.from(`\n${(error as NodeJS.ErrnoException).code}`))
      resolve()
    })
    socket.once('end', resolve)
  })
  socket.write(text)
  if (options.end) socket.end()
  await over
  socket.destroy()
  return Buffer.concat(chunks).toString('latin1')
}

const get = (host: string, path = '/', ...headers: string[]): string =>
  [`GET http://${host}${path} HTTP/1.1`, `Host: ${host}`, ...headers, '', ''].join('\r\n')

/** Everything that was open for connections is given back. */
async function nothingLeft({ egress }: Way, ...origins: Origin[]): Promise<void> {
  await vi.waitFor(() => expect(origins.map((one) => one.open())).toEqual(origins.map(() => 0)), WAIT)
  expect(egress.audits.every((record) => record.ms >= 0)).toBe(true)
}

describe('a request', () => {
  test('goes to the address that was checked, and is audited; a refused one is named', async () => {
    const there = await origin((asked, response) =>
      response.end(`${asked.method} ${asked.url} ${asked.headers.host}`),
    )
    const way = await open({ allow: [`allowed.test:${there.port}`] })
    const { sandbox, egress } = way
    const host = `allowed.test:${there.port}`
    const id = newId()
    const ran = await ask(
      sandbox,
      [
        { url: `http://${host}/a?b=1` },
        { url: 'http://Refused.test./x' },
        { url: 'http://refused.test:99/' },
      ],
      id,
    )
    expect(ran.answers).toEqual([
      { status: 200, body: `GET /a?b=1 ${host}` },
      {
        status: 403,
        body: 'Sandlot: refused.test is not on the list of hosts that this sandbox may reach.\n',
      },
      { status: 403, body: expect.stringContaining('refused.test') },
    ])
    expect(ran.refusedHosts).toEqual([
      { host: 'refused.test', port: 80, reason: 'not_allowed' },
      { host: 'refused.test', port: 99, reason: 'not_allowed' },
    ])
    await vi.waitFor(() => expect(egress.audits).toHaveLength(3), WAIT)
    expect(egress.audits.find((record) => record.host === 'allowed.test')).toMatchObject({
      userId: 'ann',
      commandId: id,
      host: 'allowed.test',
      port: there.port,
      address: '127.0.0.1',
      method: 'GET',
      decision: 'allowed',
      bytesDown: `GET /a?b=1 ${host}`.length,
    })
    expect(egress.audits.find((record) => record.port === 80)).toMatchObject({
      commandId: id,
      host: 'refused.test',
      decision: 'refused',
      reason: 'not_allowed',
    })
    expect(egress.events[0]).toMatchObject({
      type: 'egress_refused',
      userId: 'ann',
      commandId: id,
      host: 'refused.test',
      port: 80,
    })
    expect(egress.asked).toEqual(['allowed.test'])
    expect(JSON.stringify([egress.audits, egress.events])).not.toContain('b=1')
    await nothingLeft(way, there)
  })

  test('of two commands at once each gets what was refused to it', async () => {
    const { sandbox } = await open({ allow: [] })
    const [one, two] = await Promise.all([
      ask(sandbox, [{ url: 'http://one.test/' }, { url: 'https://one.test/' }]),
      ask(sandbox, [{ url: 'http://two.test/' }]),
    ])
    expect(one.refusedHosts?.map(({ host, port }) => `${host}:${port}`)).toEqual([
      'one.test:80',
      'one.test:443',
    ])
    expect(two.refusedHosts?.map(({ host }) => host)).toEqual(['two.test'])
  })

  test('its environment is in both spellings, and what the request says itself goes first', async () => {
    const { sandbox } = await open({ allow: [] })
    const { out } = await sh(
      sandbox,
      'env | grep -iE ^https?_proxy= | sort | sed -E "s/[0-9a-f]{32}/id/; s/:[0-9]+$/:port/"',
    )
    const proxy = 'http://id:sandbox@127.0.0.1:port'
    expect(out.trim().split('\n').toSorted()).toEqual(
      ['HTTPS_PROXY', 'HTTP_PROXY', 'http_proxy', 'https_proxy'].map((name) => `${name}=${proxy}`),
    )
    expect((await sh(sandbox, 'echo $NO_PROXY $no_proxy')).out).toBe(
      'localhost,127.0.0.1,::1 localhost,127.0.0.1,::1\n',
    )
    expect((await sh(sandbox, 'echo $no_proxy', { env: { no_proxy: 'mine' } })).out).toBe('mine\n')
  })

  test('credentials are added by the controller, and replace what the program says', async () => {
    const seen: (string | undefined)[] = []
    const there = await origin((asked, response) => {
      seen.push(asked.headers.authorization)
      response.end()
    })
    const canary = randomBytes(16).toString('hex')
    const hosts = [`with.test:${there.port}`, `without.test:${there.port}`]
    const { sandbox, egress } = await open({
      allow: hosts,
      credentials: { 'with.test': { value: `Bearer ${canary}` } },
    })
    const { answers } = await ask(
      sandbox,
      hosts.map((host) => ({ url: `http://${host}/`, headers: { Authorization: 'mine' } })),
    )
    const { out } = await sh(sandbox, 'env')
    expect(seen).toEqual([`Bearer ${canary}`, 'mine'])
    expect(out + JSON.stringify([answers, egress.audits])).not.toContain(canary)
  })

  test('a body with a length, in chunks and after "100 Continue" arrives whole', async () => {
    const there = await origin((asked, response) => {
      const hash = createHash('sha256')
      asked.on('data', (chunk: Buffer) => hash.update(chunk))
      asked.on('end', () => response.end(hash.digest('hex')))
    })
    const host = `allowed.test:${there.port}`
    const { sandbox } = await open({ allow: [host] })
    const { out } = await sh(sandbox, 'head -c 3000000 /dev/urandom > f; sha256sum < f | cut -c-64')
    const up = { url: `http://${host}/`, method: 'POST', file: 'f' }
    const { answers } = await ask(sandbox, [
      { ...up, headers: { 'Content-Length': '3000000' } },
      up,
      { ...up, headers: { 'Content-Length': '3000000', Expect: '100-continue' } },
    ])
    expect(answers.map(({ body }) => body)).toEqual([out.trim(), out.trim(), out.trim()])
  })

  test('without a body has none: nothing is announced that does not come', async () => {
    const there = await origin(({ headers }, response) =>
      response.end(`${headers['content-length']} ${headers['transfer-encoding']}`),
    )
    const host = `allowed.test:${there.port}`
    const { port } = await open({ allow: [host] })
    expect(await say(port, get(host).replace('GET', 'POST'))).toContain('0 undefined')
    expect(await say(port, get(host))).toContain('undefined undefined')
  })

  test('a redirect is a new request', async () => {
    const there = await origin((_asked, response) =>
      response.writeHead(302, { Location: 'http://169.254.169.254/latest' }).end(),
    )
    const { sandbox, egress } = await open({ allow: [`allowed.test:${there.port}`] })
    const { answers } = await ask(sandbox, [
      { url: `http://allowed.test:${there.port}/` },
      { url: 'http://169.254.169.254/latest' },
    ])
    expect(answers.map(({ status }) => status)).toEqual([302, 400])
    expect(egress.events).toEqual([expect.objectContaining({ reason: 'bad_request' })])
  })
})

describe('a tunnel', () => {
  test('to 443 must be TLS for that name; anything may be said to a port that is listed', async () => {
    const there = await tcp((socket) =>
      socket.on('data', (chunk) => socket.write(chunk)).on('end', () => socket.end()),
    )
    const { sandbox, port } = await open({ allow: [`echo.test:${there.port}`] })
    expect((await sh(sandbox, 'true')).code).toBe(0)
    const said = await say(
      port,
      `CONNECT echo.test:${there.port} HTTP/1.1\r\nHost: echo.test:${there.port}\r\n\r\nhello`,
      { end: true },
    )
    expect(said).toBe('HTTP/1.1 200 Connection established\r\n\r\nhello')
  })

  test('carries bytes both ways at once, unchanged', async () => {
    const there = await tcp((socket) => socket.pipe(socket))
    const way = await open({ allow: [`echo.test:${there.port}`] })
    const bytes = randomBytes(extent(4, 64) * 1024 * 1024)
    const socket = connect({ port: way.port, host: '127.0.0.1', allowHalfOpen: true })
    socket.write(
      `CONNECT echo.test:${there.port} HTTP/1.1\r\n Host:x\r\n\r\n`.replace(
        ' Host:x',
        `Host: echo.test:${there.port}`,
      ),
    )
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(answer.toString()).toContain(' 200 ')
    socket.end(bytes)
    const hash = createHash('sha256')
    for await (const chunk of socket) hash.update(chunk as Buffer)
    expect(hash.digest('hex')).toBe(createHash('sha256').update(bytes).digest('hex'))
    await vi.waitFor(() => expect(way.egress.audits).toHaveLength(1), WAIT)
    expect(way.egress.audits[0]).toMatchObject({
      bytesUp: bytes.length,
      bytesDown: bytes.length,
      decision: 'allowed',
    })
    await nothingLeft(way, there)
  })

  test('a reader that stops stops the sender: what is on its way is bounded', async () => {
    const there = await tcp((socket) => {
      const chunk = Buffer.alloc(64 * 1024)
      const pour = (): void => {
        while (socket.writable && socket.write(chunk));
      }
      socket.on('drain', pour)
      socket.once('data', pour)
    })
    const way = await open({ allow: [`pour.test:${there.port}`] })
    const socket = connect({ port: way.port, host: '127.0.0.1' })
    socket.write(`CONNECT pour.test:${there.port} HTTP/1.1\r\nHost: pour.test:${there.port}\r\n\r\n`)
    await once(socket, 'data')
    socket.pause()
    socket.write('go')
    // A command's output still passes while the connection stands still.
    expect((await sh(way.sandbox, 'seq 100000 | tail -1')).out).toBe('100000\n')
    socket.destroy()
    await vi.waitFor(() => expect(way.egress.audits).toHaveLength(1), WAIT)
    // Windows, and the buffers of three pairs of sockets.
    expect(way.egress.audits[0]?.bytesDown).toBeLessThan(32 * 1024 * 1024)
    await nothingLeft(way, there)
  })
})

test('a server that does not read stops the program: nothing is gathered in between', async () => {
  const there = await tcp((socket) => setImmediate(() => socket.pause()))
  const way = await open({ allow: [`full.test:${there.port}`] })
  const socket = connect({ port: way.port, host: '127.0.0.1' })
  socket.on('error', () => {})
  socket.write(`CONNECT full.test:${there.port} HTTP/1.1\r\nHost: full.test:${there.port}\r\n\r\n`)
  await once(socket, 'data')
  const piece = Buffer.alloc(64 * 1024)
  let taken = 0
  const pour = (): void => {
    if (taken >= 128 * 1024 * 1024) return
    socket.write(piece, (error) => {
      if (error) return
      taken += piece.length
      pour()
    })
  }
  pour()
  // Until nothing moves while ten commands run.
  for (let before = -1; before !== taken;) {
    before = taken
    for (let i = 0; i < 10; i += 1) expect((await sh(way.sandbox, 'echo on')).out).toBe('on\n')
  }
  expect(taken).toBeLessThan(64 * 1024 * 1024)
  socket.destroy()
})

describe('no place is lost', () => {
  test('101, odd methods, half-closed, pipelined, cut off, silent, refused: then all places are free', async () => {
    const raw = await tcp((socket) => {
      let got = ''
      socket.on('data', (chunk: Buffer) => {
        got += chunk.toString('latin1')
        if (!got.includes('\r\n\r\n')) return
        if (got.includes('/101'))
          socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nxyz')
        else if (got.includes('/cut')) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc')
        else if (got.includes('/noise')) socket.end('noise\r\n\r\n')
        else if (got.includes('/half')) socket.end('HTTP/1.0 200 OK\r\n\r\nuntil the end')
        else if (got.includes('/two'))
          socket.write(
            'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil',
          )
        else if (!got.includes('/silent')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      })
    })
    const host = `raw.test:${raw.port}`
    const way = await open({ allow: [host], budgets: { connections: 4 } })
    const idle = await open({ allow: [host], budgets: { connections: 1, idleMs: 100 } })
    const nowhere = await open({
      allow: ['*.test'],
      resolve: () => new Promise(() => {}),
      budgets: { connections: 1, connectMs: 100 },
    })
    const slow = await open({ allow: [host], budgets: { connections: 1, requestMs: 100 } })
    const { port, egress } = way
    const oddMethod = get(host).replace('GET', 'BREW-COFFEE')
    expect(await say(port, get(host, '/101'))).toContain(' 502 ')
    expect(await say(port, oddMethod)).toContain(' 200 ')
    expect(await say(port, get(host, '/cut'))).toContain('ECONNRESET')
    expect(await say(port, get(host, '/noise'))).toContain(' 502 ')
    expect(await say(port, get(host, '/half'), { end: true })).toContain('until the end')
    const pipelined = await say(port, get(host, '/two') + get(host, '/second') + get('refused.test'))
    expect(pipelined.match(/HTTP\/1\.1/g)).toHaveLength(1)
    expect(pipelined).not.toContain('evil')
    expect(await say(idle.port, get(host, '/silent'))).toContain(' 408 ')
    // Its name server does not answer: nothing that the program could do faster.
    expect(await say(nowhere.port, get('a.test'))).toContain(' 502 ')
    expect(await say(nowhere.port, get('a.test'))).toContain(' 502 ')
    expect(nowhere.egress.events).toEqual([])
    expect(await say(slow.port, 'GET http://slow')).toContain(' 408 ')
    expect(await say(slow.port, 'GET http://slow')).toContain(' 408 ')
    expect(await say(idle.port, `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)).toMatch(
      / 200 [^]*ECONNRESET/,
    )
    expect(await say(port, get('refused.test'))).toContain(' 403 ')
    expect(await say(port, '\x05\x01\x00')).toContain(' 400 ')
    expect(await say(port, '', { end: true })).toContain(' 502 ')
    // All four places are free again at the same moment.
    const four = await Promise.all(Array.from({ length: 4 }, () => say(port, get(host))))
    for (const answer of four) expect(answer).toContain(' 200 ')
    await vi.waitFor(() => expect(egress.audits).toHaveLength(13), WAIT)
    await nothingLeft(way, raw)
  })

  test('more connections than allowed: a typed 429, and the others are served', async () => {
    const held: (() => void)[] = []
    const there = await origin((_asked, response) => void held.push(() => response.end('held')))
    const host = `held.test:${there.port}`
    const way = await open({ allow: [host], budgets: { connections: 3 } })
    const waiting = Array.from({ length: 3 }, () => say(way.port, get(host)))
    await vi.waitFor(() => expect(held).toHaveLength(3), WAIT)
    const refused = await say(way.port, get(host))
    expect(refused).toMatch(/^HTTP\/1\.1 429 /)
    expect(refused).toContain('Retry-After: 1\r\n')
    expect(refused).toContain('X-Sandlot-Refused: too_many_connections')
    for (const answer of held) answer()
    for (const answer of await Promise.all(waiting)) expect(answer).toContain('held')
    await nothingLeft(way, there)
  })

  test('sbxd itself refuses above what it holds, in the same words of HTTP, and says how often', async () => {
    const there = await tcp(() => {})
    const host = `held.test:${there.port}`
    // Whoever has the place keeps it, however slow this machine is.
    const way = await open({ allow: [host], budgets: { connections: 1, requestMs: 600_000 } })
    const sockets: Socket[] = []
    cleanups.push(async () => sockets.forEach((socket) => socket.destroy()))
    const most = way.egress.forUser('ann').connections
    const quiet = connect({ port: way.port, host: '127.0.0.1' })
    quiet.on('error', () => {})
    sockets.push(quiet)
    await once(quiet, 'connect')
    const count = most + 100
    const answers = await Promise.all(Array.from({ length: count }, () => say(way.port, get(host))))
    for (const answer of answers) {
      expect(answer).toMatch(/^HTTP\/1\.1 429 Too Many Requests\r\n/)
      expect(answer).toContain('X-Sandlot-Refused: too_many_connections')
    }
    // Those that never came to us are counted, too.
    await vi.waitFor(() => {
      expect(way.egress.audits.reduce((sum, { count: times = 1 }) => sum + times, 0)).toBe(count)
      expect(way.egress.events.reduce((sum, { count: times = 1 }) => sum + times, 0)).toBe(count)
    }, WAIT)
    expect(new Set(way.egress.audits.map(({ reason }) => reason))).toEqual(new Set(['too_many_connections']))
    expect((await sh(way.sandbox, 'echo alive')).out).toBe('alive\n')
  })

  test('bytes beyond the budget end the connection; the next is told when to come again', async () => {
    const there = await origin((_asked, response) => response.end(Buffer.alloc(300_000)))
    const host = `big.test:${there.port}`
    const { port, egress } = await open({ allow: [host], budgets: { bytes: 200_000 } })
    expect(await say(port, get(host))).toContain('ECONNRESET')
    const next = await say(port, get(host))
    expect(next).toMatch(/^HTTP\/1\.1 429 /)
    expect(Number(/Retry-After: (\d+)/.exec(next)?.[1])).toBeGreaterThan(60)
    await vi.waitFor(
      () => expect(egress.audits.map(({ reason }) => reason)).toEqual(['byte_budget', 'byte_budget']),
      WAIT,
    )
  })
})

describe('controllers', () => {
  test('another one: connections of the last end, the listener stays and serves the new one', async () => {
    const there = await origin((_asked, response) => response.end('served'))
    const quiet = await tcp(() => {})
    const way = await open({ allow: [`a.test:${there.port}`, `quiet.test:${quiet.port}`] })
    const open1 = connect({ port: way.port, host: '127.0.0.1' })
    open1.write(`CONNECT quiet.test:${quiet.port} HTTP/1.1\r\nHost: quiet.test:${quiet.port}\r\n\r\n`)
    await once(open1, 'data')
    await way.sandbox.close()
    await vi.waitFor(() => expect(way.egress.audits).toHaveLength(1), WAIT)
    // Nobody is there: it waits.
    const waiting = say(way.port, get(`a.test:${there.port}`))
    open1.on('error', () => {})
    const ended = new Promise((resolve) => open1.once('close', resolve))
    const next = await way.bench.connect()
    await ended
    await next.openEgress(way.egress.forUser('ann'))
    expect(await waiting).toContain('served')
    await nothingLeft(way, there, quiet)
    await next.close()
  })

  test('one that falls silent: what is open ends, and when it speaks again it is served', async () => {
    const there = await origin((_asked, response) => response.end('served'))
    const quiet = await tcp(() => {})
    const way = await open({ allow: [`a.test:${there.port}`, `quiet.test:${quiet.port}`] })
    await way.sandbox.close()
    // Asked for signs of life, which it gives too seldom.
    const silent = await way.bench.connect({ heartbeatMs: 60_000, silentMs: 300 })
    await silent.openEgress(way.egress.forUser('ann'))
    const held = connect({ port: way.port, host: '127.0.0.1' })
    held.on('error', () => {})
    const ended = new Promise((resolve) => held.once('close', resolve))
    held.write(`CONNECT quiet.test:${quiet.port} HTTP/1.1\r\nHost: quiet.test:${quiet.port}\r\n\r\n`)
    await once(held, 'data')
    await ended
    await nothingLeft(way, quiet)
    // Nobody is let in while it is taken for gone; a word from it is enough.
    const waiting = say(way.port, get(`a.test:${there.port}`))
    await silent.commands()
    expect(await waiting).toContain('served')
    await silent.close()
  })

  test('one that wants no egress: the listener goes away', async () => {
    const way = await open({ allow: [] })
    await way.sandbox.close()
    const next = await way.bench.connect()
    await vi.waitFor(
      () =>
        new Promise<void>((resolve, reject) => {
          const socket = connect({ port: way.port, host: '127.0.0.1' })
          socket.once('connect', () => {
            socket.destroy()
            reject(new Error('still there'))
          })
          socket.once('error', () => resolve())
        }),
      WAIT,
    )
    expect((await sh(next, 'echo [$HTTP_PROXY]')).out).toBe('[]\n')
    await next.close()
  })
})

test('many connections one after another leave nothing behind in this process', async () => {
  const there = await origin((_asked, response) => response.end('x'))
  const host = `many.test:${there.port}`
  const way = await open({ allow: [host], budgets: { connectionsPerMinute: 1_000_000 } })
  const ask = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const asked = request(
        { port: way.port, host: '127.0.0.1', path: `http://${host}/`, headers: { Host: host }, agent: false },
        (answer) => answer.resume().once('end', () => resolve(answer.statusCode ?? 0)),
      )
      asked.once('error', reject).end()
    })
  const round = async (count: number): Promise<void> => {
    for (let done = 0; done < count; done += 20)
      for (const status of await Promise.all(Array.from({ length: 20 }, ask))) expect(status).toBe(200)
  }
  await round(200)
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  const count = extent(300, 10_000)
  await round(count)
  await vi.waitFor(() => expect(way.egress.audits).toHaveLength(200 + count), WAIT)
  way.egress.audits.length = 0
  await nothingLeft(way, there)
  collectGarbage()
  const grown = process.memoryUsage().heapUsed - before
  // What this process grows by anyhow is some hundred kilobytes.
  expect(grown).toBeLessThan(4 * 1024 * 1024 + count * 1_024)
})
