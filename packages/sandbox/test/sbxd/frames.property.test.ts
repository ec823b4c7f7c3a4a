import fc from 'fast-check'
import { expect, test, vi } from 'vitest'

import { SandboxError } from '../../src/errors.ts'
import {
  crc32c,
  encodeFrame,
  encodeOutwardFrame,
  type FrameHeader,
  FrameType,
  HEADER_BYTES,
  HELLO_CRC,
  MAX_PAYLOAD,
  readHeader,
} from '../../src/sbxd/protocol/frames.ts'
import { FrameDecoder } from '../../src/sbxd/protocol/decoder.ts'

interface Sent {
  type: FrameType
  flags: number
  channel: number
  offset: number
  payload: Uint8Array
}

const frames = fc.array(
  fc.record({
    type: fc.constantFrom(FrameType.DATA, FrameType.EXIT, FrameType.PONG, FrameType.FILE_RESULT),
    flags: fc.nat(0xffff),
    channel: fc.nat(0xffff_ffff),
    offset: fc.maxSafeNat(),
    payload: fc.uint8Array({ maxLength: 200 }),
  }),
  { maxLength: 30 },
)

function encode({ type, flags, channel, offset, payload }: Sent): Buffer {
  if (type !== FrameType.DATA) return encodeOutwardFrame(type, flags, channel, payload)
  const body = Buffer.alloc(8 + payload.length)
  body.writeBigUInt64LE(BigInt(offset))
  body.set(payload, 8)
  return encodeOutwardFrame(type, flags, channel, body)
}

/** Cut bytes into chunks at these places, whatever they are. */
function cut(bytes: Buffer, places: number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b)
  return at.slice(1).map((end, i) => bytes.subarray(at[i], end))
}

/** Everything the decoder hands on, with the pieces of one DATA frame put together again. */
function decode(chunks: Buffer[]): Sent[] {
  const seen: Sent[] = []
  let open: { header: FrameHeader; next: number } | undefined
  const decoder = new FrameDecoder({
    frame: ({ type, flags, channel }, payload) =>
      seen.push({ type: type as FrameType, flags, channel, offset: 0, payload: new Uint8Array(payload) }),
    data(header, offset, bytes) {
      const last = seen.at(-1)
      if (open?.header === header && last) {
        expect(offset).toBe(open.next)
        last.payload = new Uint8Array(Buffer.concat([last.payload, bytes]))
      } else {
        const { flags, channel } = header
        seen.push({ type: FrameType.DATA, flags, channel, offset, payload: new Uint8Array(bytes) })
      }
      open = { header, next: offset + bytes.length }
    },
  })
  for (const chunk of chunks) decoder.push(chunk)
  return seen
}

test('frames come out as they went in, whatever the chunks', () => {
  fc.assert(
    fc.property(frames, fc.array(fc.nat(), { maxLength: 60 }), (sent, places) => {
      const expected = sent
        .filter(({ type, payload }) => type !== FrameType.DATA || payload.length > 0)
        .map((frame) => (frame.type === FrameType.DATA ? frame : { ...frame, offset: 0 }))
      // Offsets near the end of the safe numbers would leave them with the last piece; sbxd cannot
      // count that far.
      fc.pre(sent.every(({ offset, payload }) => Number.isSafeInteger(offset + payload.length)))
      expect(decode(cut(Buffer.concat(sent.map(encode)), places))).toEqual(expected)
    }),
  )
})

test('a longest frame in one-byte chunks: each byte is copied twice at most', () => {
  const payload = new Uint8Array(MAX_PAYLOAD).fill(7)
  const bytes = encodeOutwardFrame(FrameType.FILE_RESULT, 0, 1, payload)
  let copied = 0
  const copy = vi.spyOn(Buffer.prototype, 'copy').mockImplementation(function (this: Buffer, target, at = 0) {
    copied += this.length
    if (target instanceof Uint8Array) target.set(this, Number(at))
    return this.length
  })
  const concat = vi.spyOn(Buffer, 'concat')
  const seen: number[] = []
  try {
    const decoder = new FrameDecoder({
      frame: (_header, body) => seen.push(body.length),
      data: () => {},
    })
    for (let at = 0; at < bytes.length; at += 1) decoder.push(bytes.subarray(at, at + 1))
    expect(concat).not.toHaveBeenCalled()
  } finally {
    copy.mockRestore()
    concat.mockRestore()
  }
  expect(seen).toEqual([MAX_PAYLOAD])
  expect(copied).toBeLessThanOrEqual(2 * bytes.length)
})

test('DATA is handed on where it lies', () => {
  const chunk = encode({
    type: FrameType.DATA,
    flags: 1,
    channel: 1,
    offset: 0,
    payload: new Uint8Array(1_000),
  })
  let same = false
  new FrameDecoder({
    frame: () => {},
    data: (_header, _offset, bytes) => (same = bytes.buffer === chunk.buffer),
  }).push(chunk)
  expect(same).toBe(true)
})

test('any bytes at all end in frames or a typed error, and after the error in nothing', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 100 }), { maxLength: 10 }), (chunks) => {
      const decoder = new FrameDecoder({ frame: () => {}, data: () => {} })
      let broken = false
      for (const chunk of chunks) {
        try {
          decoder.push(Buffer.from(chunk))
          if (broken) expect(chunk).toHaveLength(-1)
        } catch (error) {
          expect(error).toBeInstanceOf(SandboxError)
          expect(error).toMatchObject({ code: 'protocol' })
          broken = true
        }
      }
    }),
  )
})

test('a flipped bit in a header is found', () => {
  const good = encodeOutwardFrame(FrameType.PONG, 3, 9, new Uint8Array(10))
  fc.assert(
    fc.property(fc.nat(HEADER_BYTES * 8 - 1), (bit) => {
      const bad = Buffer.from(good)
      bad[bit >> 3] = (bad[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(readHeader(bad)).toBeUndefined()
    }),
  )
  expect(readHeader(good)).toEqual({ type: FrameType.PONG, flags: 3, channel: 9, length: 10 })
})

test('a frame longer than the longest is refused', () => {
  const frame = encodeOutwardFrame(FrameType.PONG, 0, 1, new Uint8Array(MAX_PAYLOAD + 1))
  expect(() => new FrameDecoder({ frame: () => {}, data: () => {} }).push(frame)).toThrow(SandboxError)
})

test('the checksum is CRC-32C', () => {
  // The catalogue's check value for "123456789" is e3069283, with inversion at both ends.
  expect((crc32c(0xffff_ffff, Buffer.from('123456789')) ^ 0xffff_ffff) >>> 0).toBe(0xe306_9283)
})

/**
 * A start value as a session draws it. A payload that begins with these four bytes would cancel
 * them; with a small number, one byte does.
 */
const SESSION_START = 0x9e37_79b1

test('a frame cut anywhere and filled with zeros never has a good checksum', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 60 }), fc.nat(), (payload, place) => {
      const frame = encodeFrame(FrameType.START, 0, 1, payload, {
        header: HELLO_CRC.header,
        payload: SESSION_START,
      })
      const at = place % frame.length
      fc.pre(frame.subarray(at).some((byte) => byte !== 0))
      const filled = Buffer.concat([frame.subarray(0, at), Buffer.alloc(frame.length - at)])
      const header = readHeader(filled)
      if (!header) return
      const sum = filled.readUInt32LE(HEADER_BYTES + header.length)
      expect(sum).not.toBe(crc32c(SESSION_START, filled, HEADER_BYTES, HEADER_BYTES + header.length))
    }),
  )
})
