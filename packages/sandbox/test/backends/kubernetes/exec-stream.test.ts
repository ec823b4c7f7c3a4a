import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises'

import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'

import { openExec } from '../../../src/backends/kubernetes/exec-stream.ts'
import { StreamPace } from '../../../src/backends/kubernetes/pace.ts'
import { SandboxError } from '../../../src/errors.ts'

/** Only a peer that sends any frames: what a cluster never sends, or not in this order. */
const server = createServer()
const sockets = new WebSocketServer({ server })
let url: string
let peer: WebSocket
/** Under `peer`, for frames that `ws` would not send. */
let raw: Socket
let stream: Duplex

const connect = async (): Promise<WebSocket> => {
  const socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: 1024 * 1024 })
  const accepted = once(sockets, 'connection')
  socket.once('open', () => socket.pause())
  await once(socket, 'open')
  const [theirs, { socket: below }] = await accepted
  peer = theirs
  raw = below
  return socket
}
const open = (pace = new StreamPace(100_000_000)): Promise<Duplex> =>
  openExec({ connect, path: () => '/' }, { pod: 'p', container: 'c', command: ['cat'] }, { pace })

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  for (const client of sockets.clients) client.terminate()
  await new Promise((resolve) => server.close(resolve))
})
beforeEach(async () => {
  stream = await open()
})

const frame = (channel: number, text: string | Uint8Array = ''): Buffer =>
  Buffer.concat([Buffer.of(channel), Buffer.from(text)])
const success = frame(3, '{"metadata":{},"status":"Success"}')

/** All bytes of the stream up to its end, and its error. */
async function ended(): Promise<{ out: string; error: SandboxError }> {
  let out = ''
  stream.on('data', (bytes: Buffer) => (out += bytes.toString()))
  if (!stream.closed) await new Promise((resolve) => stream.once('close', resolve))
  expect(stream.readableEnded).toBe(false)
  expect(stream.errored).toBeInstanceOf(SandboxError)
  return { out, error: stream.errored as SandboxError }
}

const failure = {
  status: 'Failure',
  message: 'command terminated with exit code 2',
  details: { causes: [{ reason: 'ExitCode', message: '2' }] },
}

test.for<[title: string, frames: Buffer[], out: string, words: RegExp]>([
  ['success', [frame(1, 'a'), success], 'a', /ended \(status Success; closed with 1000 bye\)/],
  ['no frame at all', [], '', /ended \(closed with 1000 bye\)/],
  [
    'a failure with words',
    [frame(2, 'no sbxd\n'), frame(3, JSON.stringify(failure))],
    '',
    /exit code 2; no sbxd; closed/,
  ],
  ['a status before output', [success, frame(1, 'late')], 'late', /status Success/],
  [
    'a status in pieces',
    [frame(3, '{"message":"Grün'), frame(1, 'a'), frame(3, ' und rot"}')],
    'a',
    /\(Grün und rot;/,
  ],
  ['a status of no JSON', [frame(3, '<h1>502</h1>\r\n')], '', /\(<h1>502<\/h1>; closed/],
  ['a status that is no object', [frame(3, 'null')], '', /\(null; closed/],
  ['a message without a channel', [Buffer.alloc(0), frame(1, 'a')], 'a', /1 messages of unknown channels/],
  [
    'unknown channels',
    [0, 4, 9, 255].flatMap((channel) => [frame(channel, 'x'), frame(1, 'a')]),
    'aaaa',
    /4 messages of unknown channels/,
  ],
  ['output of no bytes', [frame(1), frame(1), frame(1, 'a')], 'a', /\(closed/],
  ['a flood of stderr', [frame(2, `begin${'e'.repeat(100_000)}`)], '', /\(e{500}; closed/],
])('takes %s', async ([, frames, out, words]) => {
  for (const message of frames) peer.send(message)
  peer.close(1000, 'bye')
  const end = await ended()
  expect(end.out).toBe(out)
  expect(end.error).toMatchObject({ code: 'engine_unavailable', unreachable: true })
  expect(end.error.message).toMatch(words)
})

test('a status alone ends nothing', async () => {
  peer.send(success)
  peer.send(frame(1, 'still here'))
  expect((await once(stream, 'data')).toString()).toBe('still here')
  stream.write('there too')
  expect((await once(peer, 'message'))[0]).toEqual(frame(0, 'there too'))
})

test('text ends it as a broken protocol', async () => {
  peer.send(frame(1, 'a'))
  peer.send('\u0001text')
  peer.send(frame(1, 'b'))
  const { out, error } = await ended()
  expect([out, error.code]).toEqual(['a', 'protocol'])
})

test.for<[title: string, cut: () => void]>([
  ['a cut', () => raw.destroy()],
  ['a reset', () => raw.resetAndDestroy()],
  ['a message that is too large', () => peer.send(Buffer.alloc(1024 * 1024 + 1))],
  ['bytes of no WebSocket', () => raw.write('HTTP/1.1 400 Bad Request\r\n\r\n')],
])('%s ends it', async ([, cut]) => {
  cut()
  expect((await ended()).error).toMatchObject({ code: 'engine_unavailable', unreachable: true })
})

test('a write after a cut fails', async () => {
  raw.destroy()
  const failed = new Promise((resolve) => {
    const write = (): void =>
      void stream.write('x', (error) => (error ? resolve(error) : setImmediate(write)))
    write()
  })
  expect(await failed).toBeInstanceOf(Error)
  expect((await ended()).error.unreachable).toBe(true)
})

/** A frame as a server sends it. */
function encode(payload: Buffer, opcode: number, last: boolean): Buffer {
  const { length } = payload
  const first = opcode | (last ? 0x80 : 0)
  const header = length < 126 ? Buffer.of(first, length) : Buffer.of(first, 126, length >> 8, length & 255)
  return Buffer.concat([header, payload])
}

test('reads the same bytes however messages, fragments and packets are cut', async () => {
  const piece = fc.record({
    bytes: fc.uint8Array({ maxLength: 300 }),
    cut: fc.nat(300),
    between: fc.constantFrom('', 'ping', 'stray'),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { maxLength: 20 }),
      fc.array(fc.nat(), { maxLength: 30 }),
      async (pieces, cuts) => {
        stream = await open()
        const wire = Buffer.concat(
          pieces.flatMap(({ bytes, cut, between }) => {
            const message = frame(1, bytes)
            return [
              encode(message.subarray(0, cut), 2, false),
              between === 'ping' ? encode(Buffer.from('p'), 9, true) : Buffer.alloc(0),
              encode(message.subarray(cut), 0, true),
              between === 'stray' ? encode(frame(7, 'x'), 2, true) : Buffer.alloc(0),
            ]
          }),
        )
        const got: Buffer[] = []
        stream.on('data', (bytes: Buffer) => got.push(bytes))
        let from = 0
        for (const at of [...cuts.map((cut) => cut % (wire.length + 1)), wire.length].toSorted(
          (a, b) => a - b,
        )) {
          raw.write(wire.subarray(from, at))
          from = at
          await immediate()
        }
        peer.close()
        await new Promise((resolve) => stream.once('close', resolve))
        expect(Buffer.concat(got)).toEqual(Buffer.concat(pieces.map(({ bytes }) => bytes)))
      },
    ),
    { numRuns: 40 },
  )
})

test('what nobody reads stays with the sender', async () => {
  for (let i = 0; i < 400; i += 1) peer.send(frame(1, Buffer.alloc(64 * 1024)))
  await sleep(300)
  expect(peer.bufferedAmount).toBeGreaterThan(10_000_000)
  expect(stream.readableLength).toBeLessThan(512 * 1024)
  let bytes = 0
  for await (const chunk of stream) {
    bytes += (chunk as Buffer).length
    if (bytes === 400 * 64 * 1024) break
  }
})

test('what nobody takes stays with the writer, and arrives once and in order', async () => {
  peer.pause()
  const sent = Buffer.alloc(20_000_000, 'some bytes.')
  let done = 0
  for (let at = 0; at < sent.length; at += 100_000)
    stream.write(sent.subarray(at, at + 100_000), () => (done += 1))
  stream.end()
  await sleep(300)
  expect(done).toBeLessThan(150)
  const got: Buffer[] = []
  peer.on('message', (message: Buffer) => got.push(message))
  peer.resume()
  await once(stream, 'finish')
  await expect.poll(() => got.at(-1)).toEqual(Buffer.of(255, 0))
  expect(Buffer.concat(got.slice(0, -1).map((message) => message.subarray(1))).equals(sent)).toBe(true)
  expect(Math.max(...got.map(({ length }) => length))).toBeLessThanOrEqual(32 * 1024 + 1)
})

test('a sandbox over its rate is read later, and another is not', async () => {
  const pace = new StreamPace(2_000_000)
  const [flood, flooded] = [await open(pace), peer]
  const from = performance.now()
  for (let i = 0; i < 100; i += 1) flooded.send(frame(1, Buffer.alloc(32 * 1024)))
  const other = await openExec(
    { connect, path: () => '/' },
    { pod: 'other', container: 'c', command: [] },
    { pace },
  )
  peer.send(frame(1, Buffer.alloc(32 * 1024)))
  await once(other, 'data')
  expect(performance.now() - from).toBeLessThan(500)
  let bytes = 0
  for await (const chunk of flood) {
    bytes += (chunk as Buffer).length
    if (bytes === 100 * 32 * 1024) break
  }
  // All but the burst of a second.
  expect(performance.now() - from).toBeGreaterThan(500)
})

test('opens eight at once, and stops waiting when asked', async () => {
  let now = 0
  let most = 0
  const controller = new AbortController()
  const slow = async (): Promise<WebSocket> => {
    most = Math.max(most, (now += 1))
    await sleep(10)
    now -= 1
    return connect()
  }
  const pace = new StreamPace(1_000_000)
  const start = (signal?: AbortSignal): Promise<Duplex> =>
    openExec({ connect: slow, path: () => '/' }, { pod: 'p', container: 'c', command: [] }, { pace, signal })
  const all = Array.from({ length: 30 }, () => start())
  const late = start(controller.signal)
  controller.abort()
  await expect(late).rejects.toMatchObject({ code: 'cancelled' })
  for (const opened of await Promise.all(all)) opened.destroy()
  expect(most).toBe(8)
})
