import { once } from 'node:events'
import { type Socket, connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import type { startService } from '../../src/server.ts'
import { type Harness, startHarness } from '../support/harness.ts'

type ServiceDeps = NonNullable<Parameters<typeof startService>[1]>

let harness: Harness | undefined
afterEach(async () => {
  await harness?.close()
  harness = undefined
})

async function start(connections: ServiceDeps['connections'] = {}): Promise<() => Socket> {
  const running = await startHarness({}, { connections })
  harness = running
  const { hostname, port } = new URL(running.service.url)
  return () => connect(Number(port), hostname).on('error', () => undefined)
}

async function allOf(socket: Socket): Promise<string> {
  let text = ''
  socket.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  await closed(socket)
  return text
}

/** Unlike `once` also after an error: it may be reset while it sends. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve())
  })
}

const HEAD = 'POST /api/sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n'

test.each(['GET', 'POST'])('X-A4 of a body behind its answer only a little is read: %s', async (method) => {
  const open = await start({ unreadBytes: 1024 * 1024 })
  const socket = open()
  socket.write(`${method} /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000\r\n\r\n`)
  const piece = Buffer.alloc(64 * 1024, 'x')
  const send = (): void => {
    while (!socket.destroyed && socket.write(piece));
  }
  socket.on('drain', send)
  send()
  const text = await allOf(socket)
  expect(text === '' || text.startsWith('HTTP/1.1 4')).toBe(true)
  // Buffers of both kernels count too.
  expect(socket.bytesWritten).toBeLessThan(32 * 1024 * 1024)
})

test('X-A4 a head and a body that do not come are waited for only so long', async () => {
  const open = await start({ headMs: 200, requestMs: 400 })
  const head = open()
  head.write(HEAD)
  const body = open()
  body.write(`${HEAD}Content-Length: 10\r\n\r\n{`)
  const silent = open()
  const texts = await Promise.all([head, body, silent].map(allOf))
  for (const text of texts.slice(0, 2)) expect(text).toMatch(/^HTTP\/1\.1 408 /)
})

test('X-A4 beyond the most connections a further one is closed at once, and there is room when one ends', async () => {
  const open = await start({ connections: 3 })
  const sockets = [open(), open(), open(), open()]
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  await Promise.race(sockets.map(closed))
  const left = sockets.filter((socket) => !socket.destroyed)
  expect(left).toHaveLength(3)
  const [first] = left
  if (first === undefined) throw new Error('none is left')
  first.destroy()
  // The server is notified of the end a moment later.
  await expect.poll(() => answered(open())).toBe(true)
  for (const socket of left) socket.destroy()
})

/** True if a connection is served, and not closed without a word. */
async function answered(socket: Socket): Promise<boolean> {
  socket.write('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n')
  return (await allOf(socket)).startsWith('HTTP/1.1 200')
}

test('X-A4 what a refused body left unread is not counted of the requests behind it', async () => {
  const open = await start({ unreadBytes: 256 * 1024 })
  const socket = open()
  let text = ''
  socket.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  const refused = Buffer.alloc(64 * 1024, 'x')
  socket.write(`POST /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${refused.length}\r\n\r\n`)
  await expect.poll(() => text).toMatch(/^HTTP\/1\.1 4/)
  socket.write(refused)
  const many = 8_000
  for (let sent = 0; sent < many; sent++) socket.write('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
  await expect.poll(() => text.split('HTTP/1.1 200').length - 1, { timeout: 30_000 }).toBe(many)
  socket.destroy()
})
