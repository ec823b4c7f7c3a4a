/** Several controllers send HELLO to one sbxd at once: every one of them learns the result soon. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Duplex, duplexPair } from 'node:stream'

import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { campaign, extent } from '../../../../test/campaign.ts'
import { SandboxError } from '../../src/errors.ts'
import { handshake } from '../../src/sbxd/handshake.ts'
import { ByteWriter } from '../../src/sbxd/protocol/bytes.ts'
import { FrameDecoder } from '../../src/sbxd/protocol/decoder.ts'
import {
  encodeFrame,
  FLAG,
  FrameType,
  HEADER_BYTES,
  HELLO_CRC,
  PROTOCOL_VERSION,
  RESYNC_BYTES,
  sessionCrc,
} from '../../src/sbxd/protocol/frames.ts'
import { buildSbxd } from '../support/build-sbxd.ts'

const KEY = randomBytes(32)

let directory: string
let binary: string
const children: ChildProcess[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sandlot-hello-'))
  binary = await buildSbxd(directory)
}, 60_000)
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode === null) child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/** The stream to a new sbxd. */
function sbxd(): Duplex {
  const child = spawn(binary, ['--workspace', directory], { stdio: ['pipe', 'pipe', 'ignore'] })
  children.push(child)
  const stream = Duplex.from({ readable: child.stdout, writable: child.stdin })
  // It is ended in the middle of whatever it says.
  stream.on('error', () => {})
  return stream
}

function hello(epoch: number, nonce: Buffer): Buffer {
  const signed = new ByteWriter().bytes(Buffer.from('sandlot-sbxd-1\0\0')).bytes(nonce).u64(epoch).done()
  const mac = createHmac('sha256', KEY).update(signed).digest()
  const payload = new ByteWriter().u16(PROTOCOL_VERSION).u64(epoch).bytes(nonce).bytes(mac).bytes(KEY)
  return encodeFrame(FrameType.HELLO, FLAG.INSTALL, 0, payload.done(), HELLO_CRC)
}

/** sbxd's answers to HELLOs of these epochs in one write: the type, and whose nonce is in it. */
async function answers(epochs: readonly number[]): Promise<string[]> {
  const stream = sbxd()
  const nonces = epochs.map(() => randomBytes(16))
  const received: string[] = []
  const done = Promise.withResolvers<void>()
  const decoder = new FrameDecoder({
    frame({ type }, payload) {
      const whose = nonces.findIndex((nonce) => nonce.equals(payload.subarray(0, 16)))
      received.push(`${Object.entries(FrameType).find(([, value]) => value === type)?.[0]} ${whose}`)
      if (received.length === epochs.length) done.resolve()
    },
    data: () => {},
  })
  stream.on('data', (chunk: Buffer) => decoder.push(chunk))
  // Less than PIPE_BUF, so sbxd reads it at once and has answered all of it before it writes.
  const said = Buffer.concat(epochs.map((epoch, n) => hello(epoch, nonces[n] ?? Buffer.alloc(0))))
  expect(said.length).toBeLessThanOrEqual(4_096)
  stream.write(said)
  await done.promise
  return received
}

test('a HELLO that is welcomed takes no other answer away, however many come at once', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 20 }),
      async (epochs) => {
        const newest = (upto: number): number => Math.max(...epochs.slice(0, upto + 1))
        const expected = epochs.map((epoch, n) => `${epoch < newest(n) ? 'REFUSED' : 'WELCOME'} ${n}`)
        expect(await answers(epochs)).toEqual(expected)
      },
    ),
    { numRuns: extent(10, 300), seed: campaign.seed, examples: [[[2, 1, 3]]] },
  )
}, 120_000)

/**
 * A stream on which another controller writes `between` after the filler, just before the HELLO.
 */
function interrupted(stream: Duplex, between: Buffer): Duplex {
  const [ours, theirs] = duplexPair()
  let passed = 0
  theirs.on('data', (chunk: Buffer) => {
    const filler = Math.max(0, Math.min(chunk.length, RESYNC_BYTES - passed))
    passed += chunk.length
    stream.write(chunk.subarray(0, filler))
    if (filler > 0 && passed >= RESYNC_BYTES) stream.write(between)
    stream.write(chunk.subarray(filler))
  })
  stream.on('data', (chunk: Buffer) => theirs.write(chunk))
  // The handshake before this one has left it paused.
  stream.resume()
  return ours
}

test('a HELLO that another one’s half-written frame swallows is said again', async () => {
  const stream = sbxd()
  const first = await handshake(stream, KEY, 1, { timeoutMs: 20_000 })
  const frame = encodeFrame(FrameType.FILE_WRITE, 0, 1, Buffer.alloc(60_000), sessionCrc(first.nonce))
  const second = interrupted(stream, frame.subarray(0, HEADER_BYTES + 100))
  const welcome = await handshake(second, KEY, 2, { timeoutMs: 20_000, againMs: 200 })
  expect(welcome.bootId).toBe(first.bootId)
}, 120_000)

test('an engine that ends the stream says why: the sandbox is not taken for lost', async () => {
  const [stream] = duplexPair()
  stream.on('error', () => {})
  const why = new SandboxError('engine_unavailable', 'The API server ended', { unreachable: true })
  const greeting = handshake(stream, KEY, 1, { timeoutMs: 20_000 })
  stream.destroy(why)
  await expect(greeting).rejects.toBe(why)
  await expect(handshake(stream, KEY, 1, { timeoutMs: 20_000 })).rejects.toBe(why)
})

test('repeated although it was received, it restarts nothing and ends nothing', async () => {
  const stream = sbxd()
  const nonce = randomBytes(16)
  const ping = encodeFrame(FrameType.PING, 0, 7, Buffer.alloc(0), sessionCrc(nonce))
  const received: number[] = []
  const ponged = Promise.withResolvers<void>()
  const decoder = new FrameDecoder({
    frame({ type }) {
      received.push(type)
      if (type === FrameType.PONG) ponged.resolve()
    },
    data: () => {},
  })
  stream.on('data', (chunk: Buffer) => decoder.push(chunk))
  stream.write(Buffer.concat([hello(1, nonce), hello(1, nonce), ping]))
  await ponged.promise
  expect(received).toEqual([FrameType.WELCOME, FrameType.PONG])
})
