import { createHash, type Hash } from 'node:crypto'

import { SandboxError } from '../errors.ts'
import type { OutputGap } from '../sandbox.ts'

const EMPTY_SHA256 = createHash('sha256').digest('hex')

/** Received part of one stream of a command. All offsets only grow. */
export class ReceivedStream {
  /** Offset of the next byte. */
  received = 0
  /** Limit for sbxd. */
  limit = 0
  /** Offset up to which the consumer has finished. */
  taken = 0
  acknowledged = 0
  /** Every byte so far arrived here, so that the hash can be compared with sbxd's. */
  #whole = false
  #begun = 0
  #hash: Hash | undefined
  #gap: OutputGap | undefined

  begin(offset: number): void {
    this.received = this.taken = this.acknowledged = this.#begun = offset
    this.#whole = offset === 0
  }

  /** Throws `protocol` for bytes out of order or beyond the limit. */
  take(offset: number, bytes: Buffer): void {
    if (offset !== this.received)
      throw new SandboxError('protocol', `sbxd sent output at ${offset} instead of ${this.received}`)
    if (offset + bytes.length > this.limit)
      throw new SandboxError('protocol', 'sbxd sent more output than it may')
    const gap = this.#gap
    if (gap && offset < gap.from && offset + bytes.length > gap.from) throw cutBytes()
    if (this.#whole) (this.#hash ??= createHash('sha256')).update(bytes)
    this.received = this.#past(offset + bytes.length)
  }

  done(upto: number): void {
    this.taken = this.#past(upto)
  }

  /** Skips the gap, whose bytes never arrive; those after it arrive at once. */
  skip(gap: OutputGap, total: number): void {
    // Only an attachment may begin inside the gap.
    if (this.received > gap.from && this.received < gap.to && this.received !== this.#begun) throw cutBytes()
    this.#gap = gap
    this.#whole = false
    this.received = this.#past(this.received)
    this.taken = this.#past(this.taken)
    this.limit = Math.max(this.limit, total)
  }

  /** Compares the hash; true as well when not all bytes arrived here. */
  matches(sha256: string): boolean {
    return !this.#whole || (this.#hash?.digest('hex') ?? EMPTY_SHA256) === sha256
  }

  #past(offset: number): number {
    const gap = this.#gap
    return gap && offset >= gap.from && offset < gap.to ? gap.to : offset
  }
}

function cutBytes(): SandboxError {
  return new SandboxError('protocol', 'sbxd sent bytes that it reported as discarded')
}
