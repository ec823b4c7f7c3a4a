import type { Duplex } from 'node:stream'

import { SandboxError } from '../errors.ts'
import { hasSharedBuffer } from './shared-buffer.ts'
import { FrameDecoder, type FrameSink } from './protocol/decoder.ts'
import { type CrcStarts, encodeFrame, type FrameHeader, FrameType } from './protocol/frames.ts'
import type { Welcome } from './handshake.ts'
import { ByteReader, ByteWriter } from './protocol/bytes.ts'
import { Heartbeat } from './heartbeat.ts'

/** Handler of one channel's frames. A thrown `SandboxError` closes the connection. */
export interface Channel {
  frame(type: number, flags: number, payload: Buffer): void
  /** The bytes are only valid during the call. */
  data(flags: number, offset: number, bytes: Buffer): void
  /** The connection has ended; no more frames arrive. */
  lost(error: SandboxError): void
}

export interface Reply {
  type: number
  flags: number
  payload: Buffer
}

const NOTHING = Buffer.alloc(0)

/** Frames that do not count as use of a sandbox. */
const LOOKING: ReadonlySet<number> = new Set([
  FrameType.PING,
  FrameType.STAT,
  FrameType.STAT_RESULT,
  FrameType.DISK_BUDGET,
  FrameType.COMMANDS,
  FrameType.COMMAND_LIST,
  FrameType.FILE_WATCH,
])
/** Length of a PONG with a count: the number from the PING, then that of the received frames. */
const COUNT_BYTES = 16
/** Maximum of unanswered PINGs that ask how many of our frames have arrived. */
const MOST_DOUBTS = 256
/** sbxd numbers its own channels upwards from here: the highest bit and 1. */
const FIRST_INWARD = 0x8000_0001

/**
 * Frames over one stream after WELCOME: sends, dispatches to channels, detects the end. It ends
 * once, with one reason for every channel and `closed`.
 */
export class Link implements FrameSink {
  /** Resolves at the end: undefined when we closed it, else the reason. Never rejects. */
  readonly closed: Promise<SandboxError | undefined>
  /** Unasked state of the disk. The payload is only valid during the call. */
  onDiskState: (payload: Buffer) => void = () => {}
  /** Number of connections that sbxd had no room for. The payload is only valid during the call. */
  onEgressRefused: (payload: Buffer) => void = () => {}
  /** Changes in watched directories. The payload is only valid during the call. */
  onFileChanged: (flags: number, payload: Buffer) => void = () => {}
  readonly #stream: Duplex
  readonly #crc: CrcStarts
  readonly #decoder = new FrameDecoder(this)
  readonly #channels = new Map<number, Channel>()
  readonly #heartbeat: Heartbeat | undefined
  #lastChannel = 0
  #lastInward = FIRST_INWARD - 1
  #inward: ((channel: number, payload: Buffer) => Channel) | undefined
  #ended: SandboxError | undefined
  #corked = false
  #drain: Promise<void> | undefined
  #resolveClosed: (why: SandboxError | undefined) => void = () => {}
  #usedAt = performance.now()
  /** Frames sent. */
  #sent = 0
  #sentAt = performance.now()
  /** Unanswered PINGs that ask how many have arrived. */
  #doubts = 0
  /** Set while the other side may be frozen; called once, before the next frame. */
  #wake: (() => void) | undefined

  constructor(stream: Duplex, welcome: Welcome, heartbeatMs: number) {
    this.#stream = stream
    this.#crc = welcome.crc
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve
    })
    stream.on('end', () => this.#end(lost('The sandbox closed its stream')))
    stream.on('close', () => this.#end(lost('The stream to the sandbox was closed')))
    stream.on('error', (cause) => this.#end(lost('The stream to the sandbox broke', cause)))
    if (heartbeatMs > 0) this.#heartbeat = this.#beating(heartbeatMs)
    if (stream.destroyed) queueMicrotask(() => this.#end(lost('The stream to the sandbox was closed')))
    if (welcome.rest.length > 0) this.#receive(welcome.rest)
    if (hasSharedBuffer(stream)) stream.onBytes((bytes) => this.#receive(bytes))
    else stream.on('data', (bytes: Buffer) => this.#receive(bytes))
    stream.resume()
  }

  /** Last activity of a command or a file, on the clock of `performance.now()`. */
  get usedAt(): number {
    return this.#usedAt
  }

  /** A command or a request is in progress on this connection. */
  get busy(): boolean {
    return this.#channels.size > 0
  }

  get paused(): boolean {
    return this.#wake !== undefined
  }

  /** The connection has ended. */
  get ended(): boolean {
    return this.#ended !== undefined
  }

  /**
   * Stops pings until the next frame, before which `wake` is called. False when that is impossible
   * now.
   */
  preparePause(wake: () => void): boolean {
    if (this.#ended || this.busy) return false
    this.#wake = wake
    return true
  }

  /** Pings are sent while idle. */
  get sendsPings(): boolean {
    return this.#heartbeat !== undefined
  }

  /** Throws the reason of the end, if it has ended. */
  check(): void {
    if (this.#ended) throw this.#ended
  }

  /** Returns a channel number that was never used on this connection. */
  open(channel: Channel): number {
    this.check()
    this.#lastChannel += 1
    this.#channels.set(this.#lastChannel, channel)
    this.#heartbeat?.hurry()
    return this.#lastChannel
  }

  /** Accepts channels that sbxd opens, by EGRESS_OPEN with this payload. */
  onInward(take: (channel: number, payload: Buffer) => Channel): void {
    this.#inward = take
  }

  release(channel: number): void {
    this.#channels.delete(channel)
  }

  /** Queues a frame; those of one tick are one write. No effect after the end. */
  send(type: FrameType, flags: number, channel: number, payload: Uint8Array = NOTHING): void {
    if (this.#ended) return
    this.#sentAt = performance.now()
    if (!LOOKING.has(type)) this.#usedAt = this.#sentAt
    this.#wakeUp()
    if (!this.#corked) {
      this.#corked = true
      this.#stream.cork()
      queueMicrotask(() => {
        this.#corked = false
        this.#stream.uncork()
      })
    }
    this.#sent += 1
    this.#stream.write(encodeFrame(type, flags, channel, payload, this.#crc))
  }

  /** Resolves when the stream accepts more. Rejects when the connection ends first. */
  async drained(): Promise<void> {
    this.check()
    if (!this.#stream.writableNeedDrain) return
    // One listener for all waiters. Not a race with `closed`, which would retain every waiter.
    this.#drain ??= new Promise((resolve) => {
      const done = (): void => {
        this.#stream.off('drain', done).off('close', done)
        this.#drain = undefined
        resolve()
      }
      this.#stream.on('drain', done).on('close', done)
    })
    await this.#drain
    this.check()
  }

  /**
   * Sends one frame and resolves with the answer. Rejects with `timeout` after `withinMs`; a later
   * answer is ignored.
   */
  request(type: FrameType, flags = 0, payload: Uint8Array = NOTHING, withinMs?: number): Promise<Reply> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined
      const channel = this.open({
        frame: (answerType, answerFlags, answer) => {
          clearTimeout(timer)
          this.release(channel)
          // A copy: the payload is only valid during the call.
          resolve({ type: answerType, flags: answerFlags, payload: Buffer.from(answer) })
        },
        data: () => {
          throw new SandboxError('protocol', 'sbxd sent output on a channel of a request')
        },
        lost: (error) => {
          clearTimeout(timer)
          reject(error)
        },
      })
      this.send(type, flags, channel, payload)
      if (withinMs === undefined) return
      timer = setTimeout(() => {
        this.release(channel)
        reject(new SandboxError('timeout', `The sandbox did not answer within ${withinMs} ms`))
      }, withinMs)
    })
  }

  /** Everything pending rejects with `why`; without it the close was intentional. */
  close(why?: SandboxError): void {
    this.#end(why)
  }

  #wakeUp(): void {
    const wake = this.#wake
    if (!wake) return
    this.#wake = undefined
    this.#heartbeat?.received()
    wake()
  }

  frame(header: FrameHeader, payload: Buffer): void {
    if (this.#ended) return
    if (header.type === FrameType.WELCOME)
      throw new SandboxError('fenced', 'Another controller has taken this sandbox over')
    if (header.type === FrameType.DROPPED) return this.#doubt(payload)
    // REFUSED is for another controller. For a heartbeat, the arrival of its PONG is enough.
    if (header.type === FrameType.REFUSED) return
    if (header.type === FrameType.PONG) return this.#arrived(payload)
    if (header.type === FrameType.DISK_STATE && header.channel === 0) this.onDiskState(payload)
    else if (header.type === FrameType.EGRESS_REFUSED) this.onEgressRefused(payload)
    else if (header.type === FrameType.FILE_CHANGED) this.onFileChanged(header.flags, payload)
    else if (header.type === FrameType.EGRESS_OPEN) this.#openInward(header.channel, payload)
    else this.#channel(header)?.frame(header.type, header.flags, payload)
  }

  data(header: FrameHeader, offset: number, bytes: Buffer): void {
    if (!this.#ended) this.#channel(header)?.data(header.flags, offset, bytes)
  }

  /**
   * sbxd has read bytes that are not our frames: late ones of an earlier controller, or the rest of
   * a frame of ours that those have broken. Asks how many of ours have arrived.
   */
  #doubt(payload: Buffer): void {
    this.#doubts += 1
    // An older sbxd does not count them.
    if (payload.length === 0 || this.#doubts > MOST_DOUBTS) throw lost(BROKEN)
    this.send(FrameType.PING, 0, 0, new ByteWriter().u64(this.#sent + 1).done())
  }

  #arrived(payload: Buffer): void {
    if (payload.length !== COUNT_BYTES) return
    const reader = new ByteReader(payload)
    if (reader.u64() !== reader.u64()) throw lost(BROKEN)
    this.#doubts -= 1
  }

  /** Undefined for a released channel; late frames for it are harmless. */
  #channel(header: FrameHeader): Channel | undefined {
    const last = header.channel < FIRST_INWARD ? this.#lastChannel : this.#lastInward
    if (header.channel === 0 || header.channel > last) {
      throw new SandboxError('protocol', 'sbxd sent a frame for a channel that was never opened')
    }
    if (!LOOKING.has(header.type)) this.#usedAt = performance.now()
    return this.#channels.get(header.channel)
  }

  #openInward(channel: number, payload: Buffer): void {
    if (!this.#inward || channel !== this.#lastInward + 1)
      throw new SandboxError('protocol', 'sbxd opened a channel that it may not open')
    this.#lastInward = channel
    this.#channels.set(channel, this.#inward(channel, payload))
  }

  /** The bytes are only valid during the call. */
  #receive(chunk: Buffer): void {
    this.#heartbeat?.received()
    if (this.#ended) return
    try {
      this.#decoder.push(chunk)
    } catch (error) {
      this.#end(
        error instanceof SandboxError
          ? error
          : new SandboxError('protocol', 'sbxd sent something unreadable', { cause: error }),
      )
    }
  }

  #beating(everyMs: number): Heartbeat {
    return new Heartbeat({
      everyMs,
      busy: () => this.busy,
      paused: () => this.paused,
      ping: () => this.send(FrameType.PING, 0, 0),
      sentAt: () => this.#sentAt,
      lost: (ms) => this.#end(lost(`The sandbox did not answer for ${Math.round(ms)} ms`)),
    })
  }

  #end(why: SandboxError | undefined): void {
    if (this.#ended) return
    this.#ended = why ?? new SandboxError('cancelled', 'The connection to the sandbox was closed')
    this.#heartbeat?.stop()
    this.#stream.destroy()
    const channels = [...this.#channels.values()]
    this.#channels.clear()
    this.#resolveClosed(why)
    for (const channel of channels) channel.lost(this.#ended)
  }
}

const BROKEN = 'Bytes of another controller have broken the stream to the sandbox'

function lost(message: string, cause?: unknown): SandboxError {
  return new SandboxError('sandbox_lost', message, { cause })
}
