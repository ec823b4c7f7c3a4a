/** Tunnels: bytes both ways, and who is slow slows the other side down. */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'

import { expect, test, vi } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import { sh } from '../contract/harness.ts'
import { egressWays, nothingLeft, say, WAIT } from '../support/egress-way.ts'

const { open, tcp } = egressWays()

test('a tunnel to 443 must be TLS for that name; anything may be said to a port that is listed', async () => {
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

test('a tunnel carries bytes both ways at once, unchanged', async () => {
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
