import { Duplex } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import { createConnection, WINDOW_BYTES } from '../../src/sbxd/connection.ts'
import { Link } from '../../src/sbxd/link.ts'
import { ByteWriter } from '../../src/sbxd/protocol/bytes.ts'
import { FrameType } from '../../src/sbxd/protocol/frames.ts'

/** A connection on a link that nothing answers; `arrive` is what sbxd sends. */
function connection(): { stream: Duplex; arrive: (bytes: Uint8Array) => void } {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  const welcome = {
    bootId: '',
    workspace: '/workspace',
    isInit: true,
    mayTrace: false,
    commands: [],
    crc: { header: 1, payload: 1 },
    nonce: Buffer.alloc(16),
    rest: Buffer.alloc(0),
  }
  const { stream, channel } = createConnection(new Link(socket, welcome, 0), 1, 0)
  let sent = 0
  return {
    stream,
    arrive(bytes) {
      channel.frame(FrameType.CONNECTION_DATA, 0, new ByteWriter().u64(sent).bytes(bytes).done())
      sent += bytes.length
    },
  }
}

function readAll(stream: Duplex): Buffer[] {
  const chunks: Buffer[] = []
  for (let next = stream.read() as Buffer | null; next; next = stream.read() as Buffer | null)
    chunks.push(next)
  return chunks
}

test('the same bytes come out in the same order, whenever some are taken', () => {
  const piece = fc.uint8Array({ minLength: 1, maxLength: 3_000 })
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.constant('take' as const)), { maxLength: 40 }), (steps) => {
      const { stream, arrive } = connection()
      const taken: Buffer[] = []
      for (const step of steps) {
        if (step === 'take') taken.push((stream.read() as Buffer | null) ?? Buffer.alloc(0))
        else arrive(Buffer.from(step))
      }
      taken.push(...readAll(stream))
      const sent = steps.filter((step) => step !== 'take')
      expect(Buffer.concat(taken).equals(Buffer.concat(sent))).toBe(true)
    }),
    { numRuns: extent(100, 2_000) },
  )
})

test('a window full of single bytes is a few buffers', () => {
  const { stream, arrive } = connection()
  for (let at = 0; at < WINDOW_BYTES; at += 1) arrive(Buffer.from([at % 256]))
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  return expect
    .poll(() => chunks.reduce((sum, { length }) => sum + length, 0))
    .toBe(WINDOW_BYTES)
    .then(() => expect(chunks.length).toBeLessThan(100))
})
