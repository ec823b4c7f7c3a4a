import { Duplex } from 'node:stream'

import { SandboxError } from '../errors.ts'
import { ByteReader, ByteWriter } from './protocol/bytes.ts'
import { FrameType } from './protocol/frames.ts'
import type { Channel, Link } from './link.ts'
import { createPieces } from './pieces.ts'

/**
 * Bytes of one connection that may be on their way to us or wait here. sbxd says what it takes
 * where the connection is opened.
 */
export const WINDOW_BYTES = 256 * 1024
const PIECE_BYTES = 32 * 1024

/** One connection with a program inside: a stream for us, frames with credit both ways for sbxd. */
export function createConnection(
  link: Link,
  channel: number,
  limit: number,
): { stream: Duplex; channel: Channel } {
  const inward = { received: 0, taken: 0, granted: WINDOW_BYTES, ended: false }
  const arrived = createPieces()
  let wanted = false
  const outward = { sent: 0, limit, ended: false }
  let resume: (() => void) | undefined
  let over = false

  const stream = new Duplex({
    allowHalfOpen: true,
    // The windows bound what waits; a queue of the stream's own would hold a buffer for every byte
    // of a slow program.
    readableHighWaterMark: 1,
    writableHighWaterMark: 1,
    read() {
      wanted = true
      deliver()
    },
    write(chunk: Buffer, _encoding, callback) {
      void send(chunk, callback)
    },
    final(callback) {
      if (!over) link.send(FrameType.CONNECTION_EOF, 0, channel, new ByteWriter().u64(outward.sent).done())
      outward.ended = true
      callback()
      maybeDone()
    },
    destroy(error, callback) {
      // A clean end has released the channel already; anything else must not look like one inside.
      if (!over) link.send(FrameType.CONNECTION_CLOSE, 0, channel)
      release()
      callback(error)
    },
  })

  function release(): void {
    over = true
    link.release(channel)
    resume?.()
  }

  /** After both ends sbxd has forgotten the channel. */
  function maybeDone(): void {
    if (inward.ended && outward.ended) release()
  }

  /** What the reader takes makes room for as much. */
  function deliver(): void {
    while (wanted && arrived.count > 0) {
      const chunk = arrived.shift() ?? Buffer.alloc(0)
      inward.taken += chunk.length
      wanted = stream.push(chunk)
    }
    if (inward.ended && arrived.count === 0 && !stream.readableEnded) stream.push(null)
    const next = inward.taken + WINDOW_BYTES
    if (over || inward.ended || next - inward.granted < WINDOW_BYTES / 4) return
    inward.granted = next
    link.send(FrameType.CONNECTION_CREDIT, 0, channel, new ByteWriter().u64(next).done())
  }

  async function send(chunk: Buffer, done: (error?: Error) => void): Promise<void> {
    try {
      for (let at = 0; at < chunk.length;) at += await sendPiece(chunk.subarray(at, at + PIECE_BYTES))
      done()
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
    }
  }

  /** As much of it as there is credit for; waits for some. */
  async function sendPiece(piece: Buffer): Promise<number> {
    const mustWait = (): boolean => !over && outward.limit <= outward.sent
    while (mustWait())
      await new Promise<void>((resolve) => {
        resume = resolve
      })
    if (over) throw new SandboxError('cancelled', 'The program inside has closed this connection')
    const part = piece.subarray(0, outward.limit - outward.sent)
    const payload = new ByteWriter().u64(outward.sent).bytes(part).done()
    link.send(FrameType.CONNECTION_DATA, 0, channel, payload)
    outward.sent += part.length
    await link.drained()
    return part.length
  }

  function receive(type: number, payload: Buffer): void {
    const reader = new ByteReader(payload)
    switch (type) {
      case FrameType.CONNECTION_DATA: {
        const offset = reader.u64()
        const bytes = reader.rest()
        if (inward.ended || offset !== inward.received || offset + bytes.length > inward.granted)
          throw new SandboxError('protocol', 'sbxd sent bytes of a connection that it may not send')
        inward.received += bytes.length
        arrived.push(bytes)
        deliver()
        return
      }
      case FrameType.CONNECTION_CREDIT: {
        outward.limit = Math.max(outward.limit, reader.u64())
        const go = resume
        resume = undefined
        go?.()
        return
      }
      case FrameType.CONNECTION_EOF:
        if (inward.ended || reader.u64() !== inward.received)
          throw new SandboxError('protocol', 'sbxd ended a connection in the wrong place')
        inward.ended = true
        deliver()
        maybeDone()
        return
      case FrameType.CONNECTION_CLOSE:
        release()
        stream.destroy(new SandboxError('cancelled', 'The program inside has closed this connection'))
        return
      default:
        throw new SandboxError('protocol', `sbxd sent a frame of type ${type} for a connection`)
    }
  }

  return {
    stream,
    channel: {
      frame: (type, _flags, payload) => receive(type, payload),
      data() {
        throw new SandboxError('protocol', 'sbxd sent output on the channel of a connection')
      },
      lost(error) {
        over = true
        resume?.()
        stream.destroy(error)
      },
    },
  }
}
