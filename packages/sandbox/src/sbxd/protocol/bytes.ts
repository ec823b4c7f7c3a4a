import { SandboxError } from '../../errors.ts'

/** Builds a payload field by field. */
export class ByteWriter {
  #buffer = Buffer.allocUnsafe(256)
  #length = 0

  #room(bytes: number): number {
    const at = this.#length
    this.#length += bytes
    if (this.#length > this.#buffer.length) {
      const bigger = Buffer.allocUnsafe(Math.max(this.#length, this.#buffer.length * 2))
      this.#buffer.copy(bigger, 0, 0, at)
      this.#buffer = bigger
    }
    return at
  }

  u8(value: number): this {
    const at = this.#room(1)
    this.#buffer.writeUInt8(value, at)
    return this
  }

  u16(value: number): this {
    const at = this.#room(2)
    this.#buffer.writeUInt16LE(value, at)
    return this
  }

  u32(value: number): this {
    const at = this.#room(4)
    this.#buffer.writeUInt32LE(value, at)
    return this
  }

  /** A safe integer, not negative. */
  u64(value: number): this {
    const at = this.#room(8)
    this.#buffer.writeBigUInt64LE(BigInt(value), at)
    return this
  }

  /** Any 64 bits, returned unchanged. */
  opaque64(value: bigint): this {
    const at = this.#room(8)
    this.#buffer.writeBigUInt64LE(value, at)
    return this
  }

  bytes(value: Uint8Array): this {
    const at = this.#room(value.length)
    this.#buffer.set(value, at)
    return this
  }

  text(value: string): this {
    const length = Buffer.byteLength(value)
    this.u32(length)
    const at = this.#room(length)
    this.#buffer.write(value, at, 'utf8')
    return this
  }

  done(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }
}

/**
 * Reads a payload field by field. A missing or impossible field throws `SandboxError` `protocol`.
 */
export class ByteReader {
  readonly #buffer: Buffer
  #at = 0

  constructor(payload: Uint8Array) {
    this.#buffer = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  }

  #take(bytes: number): number {
    const at = this.#at
    if (bytes > this.#buffer.length - at)
      throw new SandboxError('protocol', 'sbxd sent a frame that is too short')
    this.#at += bytes
    return at
  }

  u8(): number {
    return this.#buffer.readUInt8(this.#take(1))
  }

  u16(): number {
    return this.#buffer.readUInt16LE(this.#take(2))
  }

  u32(): number {
    return this.#buffer.readUInt32LE(this.#take(4))
  }

  u64(): number {
    const value = this.#buffer.readBigUInt64LE(this.#take(8))
    if (value > BigInt(Number.MAX_SAFE_INTEGER))
      throw new SandboxError('protocol', 'sbxd sent an impossible number')
    return Number(value)
  }

  /** Any 64 bits, for values that are only compared. */
  opaque64(): bigint {
    return this.#buffer.readBigUInt64LE(this.#take(8))
  }

  bytes(length: number): Buffer {
    const at = this.#take(length)
    return this.#buffer.subarray(at, at + length)
  }

  text(): string {
    return this.bytes(this.u32()).toString('utf8')
  }

  /** Unread bytes. */
  get left(): number {
    return this.#buffer.length - this.#at
  }

  rest(): Buffer {
    return this.bytes(this.#buffer.length - this.#at)
  }
}
