/** Byte streams between the controller and programs inside, with credit in both directions. */
import { Duplex } from 'node:stream'

import { SandboxError } from '../errors.ts'
import { ByteReader, ByteWriter } from './protocol/bytes.ts'
import { FrameType } from './protocol/frames.ts'
import type { Channel, Link } from './link.ts'

/**
 * Bytes of one connection that may be in flight to us or buffered here. sbxd states its own limit
 * when the connection is opened.
 */
export const WINDOW_BYTES = 256 * 1024
const PIECE_BYTES = 32 * 1024

/** One connection with a program inside: a stream for the caller, a channel for the link. */
export function createConnection(
  link: Link,
  channel: number,
  limit: number,
): { stream: Duplex; channel: Channel } {
  const stream = new ConnectionStream(link, channel, limit)
  return {
    stream,
    channel: {
      frame: (type, _flags, payload) => stream.receive(type, payload),
      data() {
        throw new SandboxError('protocol', 'sbxd sent output on the channel of a connection')
      },
      lost: (error) => stream.lost(error),
    },
  }
}

class ConnectionStream extends Duplex {
  readonly #link: Link
  readonly #channel: number
  readonly #inward = { received: 0, taken: 0, granted: WINDOW_BYTES, ended: false }
  readonly #arrived = new Pieces()
  readonly #outward: { sent: number; limit: number; ended: boolean }
  #wanted = false
  #resume: (() => void) | undefined
  #over = false

  constructor(link: Link, channel: number, limit: number) {
    // The windows bound what is buffered; a queue of the stream's own would hold a buffer for every
    // byte of a slow program.
    super({ allowHalfOpen: true, readableHighWaterMark: 1, writableHighWaterMark: 1 })
    this.#link = link
    this.#channel = channel
    this.#outward = { sent: 0, limit, ended: false }
  }

  receive(type: number, payload: Buffer): void {
    const reader = new ByteReader(payload)
    switch (type) {
      case FrameType.CONNECTION_DATA:
        return this.#take(reader.u64(), reader.rest())
      case FrameType.CONNECTION_CREDIT: {
        this.#outward.limit = Math.max(this.#outward.limit, reader.u64())
        const resume = this.#resume
        this.#resume = undefined
        return resume?.()
      }
      case FrameType.CONNECTION_EOF:
        if (this.#inward.ended || reader.u64() !== this.#inward.received)
          throw new SandboxError('protocol', 'sbxd ended a connection in the wrong place')
        this.#inward.ended = true
        this.#deliver()
        return this.#maybeDone()
      case FrameType.CONNECTION_CLOSE:
        this.#release()
        this.destroy(closedInside())
        return
      default:
        throw new SandboxError('protocol', `sbxd sent a frame of type ${type} for a connection`)
    }
  }

  lost(error: SandboxError): void {
    this.#over = true
    this.#resume?.()
    this.destroy(error)
  }

  override _read(): void {
    this.#wanted = true
    this.#deliver()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    void this.#send(chunk, done)
  }

  override _final(done: () => void): void {
    if (!this.#over)
      this.#link.send(
        FrameType.CONNECTION_EOF,
        0,
        this.#channel,
        new ByteWriter().u64(this.#outward.sent).done(),
      )
    this.#outward.ended = true
    done()
    this.#maybeDone()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // A clean end has released the channel already; anything else must not look like one inside.
    if (!this.#over) this.#link.send(FrameType.CONNECTION_CLOSE, 0, this.#channel)
    this.#release()
    done(error)
  }

  #release(): void {
    this.#over = true
    this.#link.release(this.#channel)
    this.#resume?.()
  }

  /** After both ends sbxd has forgotten the channel. */
  #maybeDone(): void {
    if (this.#inward.ended && this.#outward.ended) this.#release()
  }

  #take(offset: number, bytes: Buffer): void {
    const inward = this.#inward
    if (inward.ended || offset !== inward.received || offset + bytes.length > inward.granted)
      throw new SandboxError('protocol', 'sbxd sent bytes of a connection that it may not send')
    inward.received += bytes.length
    this.#arrived.push(bytes)
    this.#deliver()
  }

  /** Bytes that the reader has taken are granted again. */
  #deliver(): void {
    const inward = this.#inward
    while (this.#wanted && this.#arrived.count > 0) {
      const chunk = this.#arrived.shift() ?? Buffer.alloc(0)
      inward.taken += chunk.length
      this.#wanted = this.push(chunk)
    }
    if (inward.ended && this.#arrived.count === 0 && !this.readableEnded) this.push(null)
    const next = inward.taken + WINDOW_BYTES
    if (this.#over || inward.ended || next - inward.granted < WINDOW_BYTES / 4) return
    inward.granted = next
    this.#link.send(FrameType.CONNECTION_CREDIT, 0, this.#channel, new ByteWriter().u64(next).done())
  }

  async #send(chunk: Buffer, done: (error?: Error) => void): Promise<void> {
    try {
      for (let at = 0; at < chunk.length;) at += await this.#sendPiece(chunk.subarray(at, at + PIECE_BYTES))
      done()
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
    }
  }

  /** Sends as much of it as there is credit for, after waiting for some. */
  async #sendPiece(piece: Buffer): Promise<number> {
    const outward = this.#outward
    const mustWait = (): boolean => !this.#over && outward.limit <= outward.sent
    while (mustWait())
      await new Promise<void>((resolve) => {
        this.#resume = resolve
      })
    if (this.#over) throw closedInside()
    const part = piece.subarray(0, outward.limit - outward.sent)
    const payload = new ByteWriter().u64(outward.sent).bytes(part).done()
    this.#link.send(FrameType.CONNECTION_DATA, 0, this.#channel, payload)
    outward.sent += part.length
    await this.#link.drained()
    return part.length
  }
}

/** Memory that small pieces share. */
const SHARED_BYTES = 4_096

/**
 * Unread bytes in order. Small pieces are joined: a byte with a buffer of its own would cost a
 * hundred times what was granted for it.
 */
class Pieces {
  readonly #pieces: Buffer[] = []
  /** Free memory after the last piece. */
  #room: Buffer = Buffer.alloc(0)

  get count(): number {
    return this.#pieces.length
  }

  /** Copies the bytes. */
  push(bytes: Buffer): void {
    const pieces = this.#pieces
    const last = pieces.at(-1)
    if (last && bytes.length <= this.#room.length) {
      bytes.copy(this.#room)
      this.#room = this.#room.subarray(bytes.length)
      pieces[pieces.length - 1] = Buffer.from(last.buffer, last.byteOffset, last.length + bytes.length)
      return
    }
    // A single piece is usually about to be read; spare room is allocated from the second one on.
    const memory = Buffer.allocUnsafeSlow(Math.max(bytes.length, last ? SHARED_BYTES : 0))
    bytes.copy(memory)
    pieces.push(memory.subarray(0, bytes.length))
    this.#room = memory.subarray(bytes.length)
  }

  shift(): Buffer | undefined {
    return this.#pieces.shift()
  }
}

function closedInside(): SandboxError {
  return new SandboxError('cancelled', 'The program inside has closed this connection')
}
