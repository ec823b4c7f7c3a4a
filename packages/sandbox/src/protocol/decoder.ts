import { SandboxError } from '../errors.ts'
import { FrameType, type FrameHeader, HEADER_BYTES, readHeader } from './frames.ts'

export interface FrameSink {
  /** A whole frame, any type but DATA. `payload` is only valid during the call. */
  frame(header: FrameHeader, payload: Buffer): void
  /** A piece of a DATA frame, as it arrived; a frame may come in several pieces, never with a gap. */
  data(header: FrameHeader, offset: number, bytes: Buffer): void
}

const OFFSET_BYTES = 8

/**
 * Cuts sbxd's bytes into frames, whatever the chunks. Copies only headers and control frames that lie across chunks;
 * the bytes of DATA are passed on where they are. Throws `SandboxError` `protocol` at the first byte that cannot be.
 */
export class FrameDecoder {
  readonly #sink: FrameSink
  #carry: Buffer | undefined
  #header: FrameHeader | undefined
  #offset = 0
  #left = 0
  #broken = false

  constructor(sink: FrameSink) {
    this.#sink = sink
  }

  push(chunk: Buffer): void {
    if (this.#broken) throw new SandboxError('protocol', 'sbxd sent bytes after a broken frame')
    try {
      this.#consume(chunk)
    } catch (error) {
      this.#broken = true
      throw error
    }
  }

  #consume(chunk: Buffer): void {
    const bytes = this.#carry ? Buffer.concat([this.#carry, chunk]) : chunk
    this.#carry = undefined
    let at = 0
    while (at < bytes.length) {
      if (this.#left > 0 && this.#header) {
        const piece = bytes.subarray(at, at + this.#left)
        at += piece.length
        this.#left -= piece.length
        const offset = this.#offset
        this.#offset += piece.length
        this.#sink.data(this.#header, offset, piece)
        continue
      }
      const used = this.#frameAt(bytes, at)
      if (used === 0) {
        /* Not enough for a header and what must come with it: at most one control frame is kept. */
        this.#carry = Buffer.from(bytes.subarray(at))
        return
      }
      at += used
    }
  }

  /** Bytes of the frame at `at` that are dealt with; 0 when more are needed. */
  #frameAt(bytes: Buffer, at: number): number {
    if (bytes.length - at < HEADER_BYTES) return 0
    const header = readHeader(bytes, at)
    if (!header) throw new SandboxError('protocol', 'sbxd sent bytes that are not a frame')
    const body = at + HEADER_BYTES
    if (header.type === FrameType.DATA) {
      if (header.length < OFFSET_BYTES)
        throw new SandboxError('protocol', 'sbxd sent a frame that is too short')
      if (bytes.length - body < OFFSET_BYTES) return 0
      const offset = bytes.readBigUInt64LE(body)
      if (offset > BigInt(Number.MAX_SAFE_INTEGER))
        throw new SandboxError('protocol', 'sbxd sent an impossible offset')
      this.#header = header
      this.#offset = Number(offset)
      this.#left = header.length - OFFSET_BYTES
      return HEADER_BYTES + OFFSET_BYTES
    }
    if (bytes.length - body < header.length) return 0
    this.#sink.frame(header, bytes.subarray(body, body + header.length))
    return HEADER_BYTES + header.length
  }
}
