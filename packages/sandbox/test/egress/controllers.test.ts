/**
 * Controllers that come, go and fall silent: what becomes of connections that are open, and of
 * those that wait.
 */
import { once } from 'node:events'
import { connect } from 'node:net'

import { expect, test, vi } from 'vitest'

import { sh } from '../contract/harness.ts'
import { egressWays, get, nothingLeft, say, WAIT } from '../support/egress-way.ts'

const { open, origin, tcp } = egressWays()

test('another controller: connections of the last end, the listener stays and serves the new one', async () => {
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

test('a controller that falls silent: what is open ends, and when it speaks again it is served', async () => {
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

test('a controller that wants no egress: the listener goes away', async () => {
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
