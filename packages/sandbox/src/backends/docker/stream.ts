import { Duplex } from 'node:stream'

import { SandboxError } from '../../errors.ts'
import { type SharedBufferStream, hasSharedBuffer } from '../../sbxd/shared-buffer.ts'

const HEADER_BYTES = 8

/**
 * Removes Docker's framing from an attach stream: 8 bytes (stream 0–2, three zeros, big-endian
 * length), then that many bytes. Iterative for any chunks; stores at most one header and copies
 * nothing else.
 */
export class DockerStreamSplitter {
  readonly #header = Buffer.alloc(HEADER_BYTES)
  #have = 0
  #left = 0
  #stderr = false

  /**
   * Calls `onBytes` with views into `chunk`. Throws `SandboxError` `protocol` at an invalid header,
   * for example of a container with a terminal, whose stream is not framed.
   */
  push(chunk: Buffer, onBytes: (stream: 'stdout' | 'stderr', bytes: Buffer) => void): void {
    let at = 0
    while (at < chunk.length) {
      if (this.#left === 0) {
        const take = Math.min(HEADER_BYTES - this.#have, chunk.length - at)
        chunk.copy(this.#header, this.#have, at, at + take)
        this.#have += take
        at += take
        if (this.#have === HEADER_BYTES) this.#begin()
        continue
      }
      const bytes = chunk.subarray(at, at + this.#left)
      at += bytes.length
      this.#left -= bytes.length
      onBytes(this.#stderr ? 'stderr' : 'stdout', bytes)
    }
  }

  #begin(): void {
    const header = this.#header
    const stream = header.readUInt8(0)
    if (stream > 2 || header.readUIntBE(1, 3) !== 0) {
      throw new SandboxError('protocol', 'The Docker engine sent a stream without its framing')
    }
    this.#stderr = stream === 2
    this.#left = header.readUInt32BE(4)
    this.#have = 0
  }
}

interface UnframedOptions {
  /** Receives stderr, to which sbxd writes only before it exits. Default: discarded. */
  onStderr?: (bytes: Buffer) => void
}

/**
 * Wraps the raw socket of a Docker attach as a plain duplex: reads are stdout without framing,
 * writes are passed on. Back-pressure works both ways, `end()` half-closes, and destroying either
 * side destroys the other. Where the socket lends its bytes, so does the duplex.
 */
export function unframed(socket: Duplex, options: UnframedOptions = {}): Duplex & SharedBufferStream {
  const stream = new UnframedStream(socket, options)
  stream.begin()
  return stream
}

class UnframedStream extends Duplex implements SharedBufferStream {
  readonly #socket: Duplex
  readonly #onStderr: ((bytes: Buffer) => void) | undefined
  readonly #splitter = new DockerStreamSplitter()
  #consumer: ((bytes: Buffer) => void) | undefined
  /** The write pending on the socket. */
  #waiting: ((error?: Error | null) => void) | undefined

  constructor(socket: Duplex, { onStderr }: UnframedOptions) {
    super()
    this.#socket = socket
    this.#onStderr = onStderr
  }

  begin(): void {
    const socket = this.#socket
    socket.on('drain', () => {
      const done = this.#waiting
      this.#waiting = undefined
      done?.()
    })
    if (hasSharedBuffer(socket)) socket.onBytes((bytes) => this.#arrived(bytes, true))
    else socket.on('data', (bytes: Buffer) => this.#arrived(bytes, false))
    socket.on('end', () => this.push(null))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => {
      if (!this.destroyed && !this.readableEnded && !socket.readableEnded) this.destroy()
    })
  }

  onBytes(consumer: (bytes: Buffer) => void): void {
    for (let bytes: unknown; Buffer.isBuffer((bytes = this.read()));) consumer(bytes)
    this.#consumer = consumer
    this.#socket.resume()
  }

  #arrived(raw: Buffer, lent: boolean): void {
    try {
      this.#splitter.push(raw, (stream, bytes) => {
        if (stream === 'stderr') this.#onStderr?.(bytes)
        else if (this.#consumer) this.#consumer(bytes)
        else if (!this.push(lent ? Buffer.from(bytes) : bytes)) this.#socket.pause()
      })
    } catch (error) {
      this.destroy(error instanceof Error ? error : new Error(String(error)))
    }
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send(() => this.#socket.write(chunk), done)
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    const socket = this.#socket
    this.#send(() => {
      socket.cork()
      let more = true
      for (const { chunk } of chunks) more = socket.write(chunk)
      socket.uncork()
      return more
    }, done)
  }

  override _final(done: () => void): void {
    this.#socket.end(() => done())
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy()
    this.#waiting?.()
    done(error)
  }

  #send(write: () => boolean, done: (error?: Error | null) => void): void {
    if (this.#socket.destroyed) done(new SandboxError('sandbox_lost', 'The stream to the sandbox is closed'))
    else if (write()) done()
    else this.#waiting = done
  }
}
