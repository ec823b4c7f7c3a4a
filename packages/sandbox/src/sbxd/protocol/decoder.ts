import { SandboxError } from '../../errors.ts'
import { FrameType, type FrameHeader, HEADER_BYTES, readHeader } from './frames.ts'

export interface FrameSink {
  /** A whole frame, any type but DATA. `payload` is only valid during the call. */
  frame(header: FrameHeader, payload: Buffer): void
  /**
   * A piece of a DATA frame on arrival; a frame may come in several pieces without gaps. `bytes` is
   * only valid during the call.
   */
  data(header: FrameHeader, offset: number, bytes: Buffer): void
}

const OFFSET_BYTES = 8

/**
 * Splits sbxd's bytes into frames, whatever the chunks. Copies only headers and control frames that
 * span chunks; the bytes of DATA are passed on in place. Throws `SandboxError` `protocol` at the
 * first invalid byte.
 */
export class FrameDecoder {
  readonly #sink: FrameSink
  /**
   * The beginning of a frame that spans chunks: `#have` bytes of it, of the `#need` before it is
   * parsed again.
   */
  #carry = Buffer.alloc(0)
  #have = 0
  #need = HEADER_BYTES
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
    let at = this.#have > 0 ? this.#complete(chunk) : 0
    while (at < chunk.length) {
      if (this.#left > 0 && this.#header) {
        const piece = chunk.subarray(at, at + this.#left)
        at += piece.length
        this.#left -= piece.length
        const offset = this.#offset
        this.#offset += piece.length
        this.#sink.data(this.#header, offset, piece)
        continue
      }
      const used = this.#frameAt(chunk, at)
      if (used === 0) {
        this.#keep(chunk.subarray(at))
        return
      }
      at += used
    }
  }

  /** Completes the carried bytes. Returns the number of bytes taken from the chunk. */
  #complete(chunk: Buffer): number {
    let at = 0
    while (at < chunk.length) {
      const piece = chunk.subarray(at, at + this.#need - this.#have)
      piece.copy(this.#carry, this.#have)
      at += piece.length
      this.#have += piece.length
      if (this.#have < this.#need) break
      const whole = this.#carry.subarray(0, this.#have)
      this.#have = 0
      if (this.#frameAt(whole, 0) > 0) break
      this.#keep(whole)
    }
    return at
  }

  /**
   * Copies it with room for the rest, so that each byte is copied twice at most, however small the
   * chunks.
   */
  #keep(beginning: Buffer): void {
    this.#carry = Buffer.allocUnsafe(this.#need)
    this.#have = beginning.copy(this.#carry)
  }

  /** Consumed bytes of the frame at `at`; 0 when fewer than `#need` bytes of it are present. */
  #frameAt(bytes: Buffer, at: number): number {
    if (!this.#enough(bytes, at, HEADER_BYTES)) return 0
    const header = readHeader(bytes, at)
    if (!header) throw new SandboxError('protocol', 'sbxd sent bytes that are not a frame')
    const body = at + HEADER_BYTES
    if (header.type === FrameType.DATA) {
      if (header.length < OFFSET_BYTES)
        throw new SandboxError('protocol', 'sbxd sent a frame that is too short')
      if (!this.#enough(bytes, at, HEADER_BYTES + OFFSET_BYTES)) return 0
      const offset = bytes.readBigUInt64LE(body)
      if (offset > BigInt(Number.MAX_SAFE_INTEGER))
        throw new SandboxError('protocol', 'sbxd sent an impossible offset')
      this.#header = header
      this.#offset = Number(offset)
      this.#left = header.length - OFFSET_BYTES
      return HEADER_BYTES + OFFSET_BYTES
    }
    if (!this.#enough(bytes, at, HEADER_BYTES + header.length)) return 0
    this.#sink.frame(header, bytes.subarray(body, body + header.length))
    return HEADER_BYTES + header.length
  }

  #enough(bytes: Buffer, at: number, need: number): boolean {
    this.#need = need
    return bytes.length - at >= need
  }
}
