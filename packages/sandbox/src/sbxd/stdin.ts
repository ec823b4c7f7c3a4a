import { SerialQueue } from '#shared/async/serial-queue'
import type { SandboxError } from '../errors.ts'
import { ByteWriter } from './protocol/bytes.ts'
import { FrameType, MAX_PAYLOAD, STREAM } from './protocol/frames.ts'
import type { Link } from './link.ts'

const PIECE = MAX_PAYLOAD - 8

/**
 * A command's stdin: ordered bytes within sbxd's credit. Every method rejects after the command's
 * end.
 */
export class StdinWriter {
  readonly #link: Link
  readonly #channel: number
  #offset = 0
  #limit = 0
  #over: (() => SandboxError) | undefined
  #wake: (() => void)[] = []
  readonly #queue = new SerialQueue()

  constructor(link: Link, channel: number) {
    this.#link = link
    this.#channel = channel
  }

  /** Bytes that sbxd has or that are in flight. */
  get offset(): number {
    return this.#offset
  }

  begin(offset: number, limit: number): void {
    this.#offset = offset
    this.credit(limit)
  }

  credit(limit: number): void {
    this.#limit = Math.max(this.#limit, limit)
    this.#wakeAll()
  }

  /**
   * `why` is called only by a late write: every command ends here, and an error with its stack is a
   * fiftieth of a short command's time.
   */
  end(why: () => SandboxError): void {
    this.#over ??= why
    this.#wakeAll()
  }

  write(data: Uint8Array): Promise<void> {
    return this.#queue.run(async () => {
      for (let at = 0; at < data.length;) {
        const piece = data.subarray(at, at + Math.min(PIECE, await this.#room()))
        this.#link.send(
          FrameType.DATA,
          STREAM.stdin,
          this.#channel,
          new ByteWriter().u64(this.#offset).bytes(piece).done(),
        )
        this.#offset += piece.length
        at += piece.length
        await this.#link.drained()
      }
    })
  }

  /** Once; after the command's end it has no effect. */
  close(): Promise<void> {
    return this.#queue.run(async () => {
      if (this.#over) return
      this.#link.check()
      this.#link.send(FrameType.EOF, STREAM.stdin, this.#channel, new ByteWriter().u64(this.#offset).done())
    })
  }

  async #room(): Promise<number> {
    for (;;) {
      if (this.#over) throw this.#over()
      if (this.#limit > this.#offset) return this.#limit - this.#offset
      await new Promise<void>((resolve) => this.#wake.push(resolve))
    }
  }

  #wakeAll(): void {
    const waiting = this.#wake
    this.#wake = []
    for (const wake of waiting) wake()
  }
}
