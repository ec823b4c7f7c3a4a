import { Duplex } from 'node:stream'

import type { UserEgress } from '../egress/egress.ts'
import { SandboxError } from '../errors.ts'
import { ByteReader, ByteWriter } from './protocol/bytes.ts'
import { FrameType } from './protocol/frames.ts'
import type { Channel, Link } from './link.ts'
import { createPieces } from './pieces.ts'

/** Where programs in a container find the way out. */
export const EGRESS_PORT = 3128

/**
 * Bytes of one connection that may be on their way to us or wait here. sbxd says in OPEN what it
 * takes.
 */
const WINDOW_BYTES = 256 * 1024
const PIECE_BYTES = 32 * 1024
const EADDRINUSE = 98
/**
 * Without a word from us for so long sbxd closes what it holds for us. Signs of life come much
 * oftener.
 */
const SILENT_MS = 120_000

/**
 * Ask sbxd to listen on the loopback interface and give every connection to `egress`. Resolves to
 * the port, which is another than asked for when something inside has taken that one. Rejects with
 * `SandboxError`.
 */
export async function openEgress(
  link: Link,
  egress: UserEgress,
  askedPort: number,
  silentMs = SILENT_MS,
): Promise<number> {
  link.onInward((channel, payload) => {
    const made = createConnection(link, channel, new ByteReader(payload).u64())
    egress.serve(made.stream).catch(() => made.stream.destroy())
    return made.channel
  })
  link.onEgressRefused = (payload) => egress.refusedInside(new ByteReader(payload).u32())
  const ask = async (port: number): Promise<{ error: number; port: number }> => {
    const question = new ByteWriter()
      .u16(port)
      .u16(egress.connections)
      .u32(link.asksForLife ? silentMs : 0)
      .done()
    const { type, payload } = await link.request(FrameType.EGRESS_LISTEN, 0, question)
    if (type !== FrameType.EGRESS_RESULT)
      throw new SandboxError('protocol', 'sbxd answered EGRESS_LISTEN with something else')
    const reader = new ByteReader(payload)
    return { error: reader.u32(), port: reader.u16() }
  }
  let answer = await ask(askedPort)
  if (answer.error === EADDRINUSE && askedPort !== 0) answer = await ask(0)
  if (answer.error !== 0)
    throw new SandboxError(
      'start_failed',
      `The sandbox cannot listen for connections to the network (error ${answer.error})`,
    )
  return answer.port
}

/** One connection: a stream for us, frames with credit in both directions for sbxd. */
function createConnection(link: Link, channel: number, limit: number): { stream: Duplex; channel: Channel } {
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
      if (!over) link.send(FrameType.EGRESS_EOF, 0, channel, new ByteWriter().u64(outward.sent).done())
      outward.ended = true
      callback()
      maybeDone()
    },
    destroy(error, callback) {
      // A clean end has released the channel already; anything else must not look like one inside.
      if (!over) link.send(FrameType.EGRESS_CLOSE, 0, channel)
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
    link.send(FrameType.EGRESS_CREDIT, 0, channel, new ByteWriter().u64(next).done())
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
    link.send(FrameType.EGRESS_DATA, 0, channel, payload)
    outward.sent += part.length
    await link.drained()
    return part.length
  }

  function receive(type: number, payload: Buffer): void {
    const reader = new ByteReader(payload)
    switch (type) {
      case FrameType.EGRESS_DATA: {
        const offset = reader.u64()
        const bytes = reader.rest()
        if (inward.ended || offset !== inward.received || offset + bytes.length > inward.granted)
          throw new SandboxError('protocol', 'sbxd sent bytes of a connection that it may not send')
        inward.received += bytes.length
        arrived.push(bytes)
        deliver()
        return
      }
      case FrameType.EGRESS_CREDIT: {
        outward.limit = Math.max(outward.limit, reader.u64())
        const go = resume
        resume = undefined
        go?.()
        return
      }
      case FrameType.EGRESS_EOF:
        if (inward.ended || reader.u64() !== inward.received)
          throw new SandboxError('protocol', 'sbxd ended a connection in the wrong place')
        inward.ended = true
        deliver()
        maybeDone()
        return
      case FrameType.EGRESS_CLOSE:
        release()
        stream.destroy(new SandboxError('cancelled', 'The program inside has closed this connection'))
        return
      default:
        throw new SandboxError('protocol', `sbxd sent a frame of type ${type} for a connection`)
    }
  }

  const answer = new ByteWriter().u32(0).u64(WINDOW_BYTES).done()
  link.send(FrameType.EGRESS_RESULT, 0, channel, answer)
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
