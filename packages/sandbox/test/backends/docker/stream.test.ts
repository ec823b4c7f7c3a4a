import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { duplexPair } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setImmediate as immediate } from 'node:timers/promises'

import fc from 'fast-check'
import { expect, test } from 'vitest'

import { DockerStreamSplitter, unframed } from '../../../src/backends/docker/stream.ts'
import { SandboxError } from '../../../src/errors.ts'
import { connectSharedBuffer } from '../../../src/sbxd/shared-buffer.ts'

type Piece = [stream: 'stdout' | 'stderr', bytes: Uint8Array]

function framed([stream, bytes]: Piece): Buffer {
  const header = Buffer.alloc(8)
  header[0] = stream === 'stdout' ? 1 : 2
  header.writeUInt32BE(bytes.length, 4)
  return Buffer.concat([header, bytes])
}

function split(chunks: Buffer[]): Record<'stdout' | 'stderr', Buffer> {
  const seen = { stdout: [] as Buffer[], stderr: [] as Buffer[] }
  const splitter = new DockerStreamSplitter()
  for (const chunk of chunks) splitter.push(chunk, (stream, bytes) => seen[stream].push(bytes))
  return { stdout: Buffer.concat(seen.stdout), stderr: Buffer.concat(seen.stderr) }
}

const joined = (pieces: Piece[], wanted: string): Buffer =>
  Buffer.concat(pieces.filter(([stream]) => stream === wanted).map(([, bytes]) => bytes))

test('splits whatever the chunks', () => {
  const piece = fc.tuple(
    fc.constantFrom('stdout' as const, 'stderr' as const),
    fc.uint8Array({ maxLength: 50 }),
  )
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 40 }),
      fc.array(fc.nat(), { maxLength: 80 }),
      (pieces, places) => {
        const bytes = Buffer.concat(pieces.map(framed))
        const at = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].toSorted(
          (a, b) => a - b,
        )
        const chunks = at.slice(1).map((end, i) => bytes.subarray(at[i], end))
        expect(split(chunks)).toEqual({ stdout: joined(pieces, 'stdout'), stderr: joined(pieces, 'stderr') })
      },
    ),
  )
})

test('takes a flood of tiny frames in one chunk', () => {
  const pieces = Array.from({ length: 200_000 }, (_, i): Piece => [
    i % 2 ? 'stderr' : 'stdout',
    Buffer.from('x'),
  ])
  expect(split([Buffer.concat(pieces.map(framed))]).stdout).toHaveLength(100_000)
})

test('copies nothing but headers', () => {
  const chunk = framed(['stdout', Buffer.alloc(1_000)])
  new DockerStreamSplitter().push(chunk, (_stream, bytes) => expect(bytes.buffer).toBe(chunk.buffer))
})

test('refuses a stream without framing', () => {
  for (const bytes of ['plain text of a terminal', '\u0001\u0001\u0000\u0000\u0000\u0000\u0000\u0001x']) {
    expect(() => new DockerStreamSplitter().push(Buffer.from(bytes), () => {})).toThrow(SandboxError)
  }
})

test('is a duplex: output without framing, input as it is, half-close both ways', async () => {
  const [ours, engine] = duplexPair()
  const errors: string[] = []
  const stream = unframed(ours, { onStderr: (bytes) => errors.push(bytes.toString()) })
  const received = text(engine)
  stream.end('to sbxd')
  expect(await received).toBe('to sbxd')
  engine.write(framed(['stderr', Buffer.from('last word')]))
  engine.end(framed(['stdout', Buffer.from('from sbxd')]))
  expect(await text(stream)).toBe('from sbxd')
  expect(errors).toEqual(['last word'])
})

test('holds the engine back while unread, and lets it continue', async () => {
  const [ours, engine] = duplexPair()
  const stream = unframed(ours)
  const total = 4_000_000
  let accepted = 0
  const writing = (async () => {
    while (accepted < total) {
      accepted += 10_000
      if (!engine.write(framed(['stdout', Buffer.alloc(10_000)])))
        await new Promise((resolve) => engine.once('drain', resolve))
    }
    engine.end()
  })()
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(accepted).toBeLessThan(1_000_000)
  let received = 0
  for await (const chunk of stream) received += (chunk as Buffer).length
  await writing
  expect(received).toBe(total)
})

test('lends what it reads, whatever waited before and however the bytes are cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 3_000 }), { minLength: 1, maxLength: 12 }),
      fc.array(fc.nat(), { maxLength: 20 }),
      fc.nat({ max: 12 }),
      async (pieces, places, borrowedAfter) => {
        const bytes = Buffer.concat(pieces.map((piece) => framed(['stdout', piece])))
        const cuts = [0, ...places.map((place) => place % bytes.length), bytes.length].toSorted(
          (a, b) => a - b,
        )
        await using engine = await listening((socket) => void dribble(socket, bytes, cuts))
        const socket = connectSharedBuffer((onread) => connect({ path: engine.path, onread }), {
          paced: true,
        })
        socket.pause()
        const stream = unframed(socket)
        const seen: Buffer[] = []
        for (let i = 0; i < borrowedAfter; i += 1) await immediate()
        stream.onBytes((lent) => seen.push(Buffer.from(lent)))
        stream.resume()
        await once(stream, 'end')
        expect(Buffer.concat(seen)).toEqual(Buffer.concat(pieces))
      },
    ),
    { numRuns: 25 },
  )
})

test('hands out a flood whole and in order, though it pauses between reads', async () => {
  const bytes = Buffer.alloc(32 * 1024 * 1024)
  for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32LE(at, at)
  await using engine = await listening((socket) => {
    for (let at = 0; at < bytes.length; at += 8_192) socket.write(bytes.subarray(at, at + 8_192))
    socket.end()
  })
  const socket = connectSharedBuffer((onread) => connect({ path: engine.path, onread }), { paced: true })
  const hash = createHash('sha256')
  socket.onBytes((lent) => hash.update(lent))
  await once(socket, 'end')
  expect(hash.digest('hex')).toBe(createHash('sha256').update(bytes).digest('hex'))
})

/** A server on a socket of its own. */
async function listening(serve: (socket: Socket) => void): Promise<AsyncDisposable & { path: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-lend-'))
  const path = join(folder, 'engine.sock')
  const server = createServer(serve).listen(path)
  await once(server, 'listening')
  return {
    path,
    async [Symbol.asyncDispose]() {
      server.close()
      await rm(folder, { recursive: true })
    },
  }
}

async function dribble(socket: Socket, bytes: Buffer, cuts: number[]): Promise<void> {
  for (const [i, end] of cuts.slice(1).entries()) {
    socket.write(bytes.subarray(cuts[i], end))
    await immediate()
  }
  socket.end()
}

test('ends with a typed error when the framing breaks', async () => {
  const [ours, engine] = duplexPair()
  const stream = unframed(ours)
  engine.write('this is not framed')
  await expect(text(stream)).rejects.toMatchObject({ code: 'protocol' })
  expect(ours.destroyed).toBe(true)
})
