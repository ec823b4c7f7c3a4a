/**
 * Places for connections and what a connection holds: both are bounded, and all of it comes back.
 */
import { once } from 'node:events'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { expect, test, vi } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import { sh } from '../contract/harness.ts'
import { egressWays, get, nothingLeft, say, WAIT } from '../support/egress-way.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const { open, origin, tcp, after } = egressWays()

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
  // The holder keeps its slot, however slow this machine is.
  const way = await open({ allow: [host], budgets: { connections: 1, requestMs: 600_000 } })
  const sockets: Socket[] = []
  after(async () => sockets.forEach((socket) => socket.destroy()))
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

test('bytes beyond the budget end the connection; the next gets a Retry-After', async () => {
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
  // This process grows by some hundred kilobytes anyhow.
  expect(grown).toBeLessThan(4 * 1024 * 1024 + count * 1_024)
})
