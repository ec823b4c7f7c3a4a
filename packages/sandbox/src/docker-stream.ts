import { Duplex } from 'node:stream'

import { SandboxError } from './errors.ts'

const HEADER_BYTES = 8

/**
 * Removes Docker's framing from an attach stream: 8 bytes (stream 0–2, three zeros, length big-endian), then that many
 * bytes. Iterative, whatever the chunks; keeps at most one header and copies nothing else.
 */
export class DockerStreamSplitter {
  readonly #header = Buffer.alloc(HEADER_BYTES)
  #have = 0
  #left = 0
  #stderr = false

  /**
   * Calls `onBytes` with views into `chunk`. Throws `SandboxError` `protocol` at a header that cannot be one, for
   * example of a container with a terminal, whose stream is not framed.
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

export interface UnframedOptions {
  /** What the container wrote to stderr; sbxd does so only before it dies. Default: thrown away. */
  onStderr?: (bytes: Buffer) => void
}

/**
 * The raw socket of a Docker attach as a plain duplex: stdout without framing is read, writes go through as they are.
 * Back-pressure holds both ways, `end()` half-closes, and either side's destruction is the other's.
 */
export function unframed(socket: Duplex, options: UnframedOptions = {}): Duplex {
  const splitter = new DockerStreamSplitter()
  let waiting: (() => void) | undefined

  const duplex = new Duplex({
    read() {
      socket.resume()
    },
    write(chunk: Buffer, _encoding, done) {
      send(() => socket.write(chunk), done)
    },
    writev(chunks, done) {
      send(() => {
        socket.cork()
        let more = true
        for (const { chunk } of chunks) more = socket.write(chunk)
        socket.uncork()
        return more
      }, done)
    },
    final(done) {
      socket.end(() => done())
    },
    destroy(error, done) {
      socket.destroy()
      waiting?.()
      done(error)
    },
  })

  function send(write: () => boolean, done: (error?: Error | null) => void): void {
    if (socket.destroyed) done(new SandboxError('sandbox_lost', 'The stream to the sandbox is closed'))
    else if (write()) done()
    else waiting = done
  }

  socket.on('drain', () => {
    const done = waiting
    waiting = undefined
    done?.()
  })
  socket.on('data', (chunk: Buffer) => {
    try {
      splitter.push(chunk, (stream, bytes) => {
        if (stream === 'stderr') options.onStderr?.(bytes)
        else if (!duplex.push(bytes)) socket.pause()
      })
    } catch (error) {
      duplex.destroy(error instanceof Error ? error : new Error(String(error)))
    }
  })
  socket.on('end', () => duplex.push(null))
  socket.on('error', (error) => duplex.destroy(error))
  socket.on('close', () => {
    if (!duplex.destroyed && !duplex.readableEnded && !socket.readableEnded) duplex.destroy()
  })
  return duplex
}
