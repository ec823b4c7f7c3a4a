import type { ChildProcess } from 'node:child_process'
import { Duplex, type Readable, type Writable } from 'node:stream'

import { SandboxError } from '../errors.ts'

/**
 * The streams to one sbxd, like a container's attach streams: any number at once, before its start or after, each
 * gets all output from then on and may write. Output that nobody is attached for is thrown away. The child's own pipes
 * stay open when a stream goes.
 */
export class AttachStreams {
  readonly #attached = new Set<Duplex>()
  #input: Writable | undefined
  #output: Readable | undefined
  /** Writes that wait for the child to start or to read on. */
  readonly #waiting = new Set<() => void>()

  open(): Duplex {
    const stream: Duplex = new Duplex({
      read: () => this.#resume(),
      write: (chunk: Buffer, _encoding, done) => this.#write(stream, chunk, done),
      // Half-closing one attach stream does not close the child's stdin.
      final: (done) => done(),
      destroy: (error, done) => {
        this.#attached.delete(stream)
        this.#resume()
        this.#wakeAll()
        done(error)
      },
    })
    this.#attached.add(stream)
    return stream
  }

  /** The child has been spawned with pipes for stdin and stdout. */
  begin(child: ChildProcess): void {
    const { stdin, stdout } = child
    if (!stdin || !stdout) throw new SandboxError('engine_unavailable', 'sbxd was started without pipes')
    this.#input = stdin
    this.#output = stdout
    // A write to a child that has just died fails here; that it died is noticed by its exit.
    stdin.on('error', () => {})
    stdin.on('drain', () => this.#wakeAll())
    stdout.on('data', (chunk: Buffer) => {
      for (const stream of this.#attached) if (!stream.push(chunk)) stdout.pause()
    })
    this.#wakeAll()
  }

  /** The child is gone: every stream ends, with its last words, if any, as the reason. */
  end(lastWords = ''): void {
    const why = lastWords ? new SandboxError('sandbox_lost', `The sandbox ended: ${lastWords}`) : undefined
    this.#input = undefined
    this.#output = undefined
    for (const stream of this.#attached) {
      if (!why) stream.push(null)
      stream.destroy(why)
    }
    this.#attached.clear()
    this.#wakeAll()
  }

  #write(from: Duplex, chunk: Buffer, done: (error?: Error | null) => void): void {
    if (from.destroyed) return done(new SandboxError('sandbox_lost', 'The stream to the sandbox is closed'))
    if (!this.#input) {
      this.#waiting.add(() => this.#write(from, chunk, done))
      return
    }
    if (this.#input.write(chunk)) done()
    else this.#waiting.add(() => done())
  }

  #wakeAll(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const wake of waiting) wake()
  }

  /** Read on unless a consumer is still full. Each stream asks by its `read`, so the slowest sets the pace. */
  #resume(): void {
    for (const stream of this.#attached) if (stream.readableLength >= stream.readableHighWaterMark) return
    this.#output?.resume()
  }
}
