/** A long exec in a Pod as a duplex byte stream. */
import { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

import type { WebSocket } from 'ws'

import { createGate } from '#shared/async/keyed-lock'
import { SandboxError } from '../../errors.ts'
import type { KubernetesApi } from './api.ts'
import { PODS } from './objects.ts'
import type { PacedStream, StreamPace } from './pace.ts'

/** Every message begins with the number of its channel. */
const PROTOCOL = 'v5.channel.k8s.io'
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, status: 3, close: 255 } as const

/** Largest payload of a message that is sent; the other side sends such ones too. */
const PIECE_BYTES = 32 * 1024
/** Stored of stderr (its end) and of the status (its beginning), for the words of an error. */
const KEPT_BYTES = 4 * 1024
const STDERR_CHARACTERS = 500
/** Streams of this process that are opened at once; the others wait, and begin at random times. */
const AT_ONCE = 8
const JITTER_MS = 40

const gate = createGate(AT_ONCE)
let opening = 0

interface ExecOptions {
  pace: StreamPace
  /** Cancels only the opening. */
  signal?: AbortSignal | undefined
}

/** The end of a stream, whatever its reason. */
export class StreamEnded extends SandboxError {
  /** Exit code of the program, where the runtime of the node has said one other than 0. */
  readonly exitCode: number | undefined

  constructor(details: string, exitCode: number | undefined, cause: unknown) {
    super(
      'engine_unavailable',
      `The stream to the sandbox through the cluster's API server ended (${details}).`,
      { cause, unreachable: true },
    )
    this.exitCode = exitCode
  }
}

/**
 * Starts `command` in a container and connects to its stdin and stdout. The end of the stream never
 * means that the command has ended: at any end, also one that claims success, it is destroyed with
 * a `StreamEnded`, and unread bytes are dropped. The message includes the end of stderr.
 * Back-pressure works in both directions; `end()` closes stdin. Rejects with a `SandboxError` as
 * `KubernetesApi.connect` does.
 */
export async function openExec(
  api: Pick<KubernetesApi, 'connect' | 'path'>,
  { pod, container, command }: { pod: string; container: string; command: readonly string[] },
  { pace, signal }: ExecOptions,
): Promise<Duplex> {
  const query = new URLSearchParams({
    container,
    stdin: 'true',
    stdout: 'true',
    stderr: 'true',
    tty: 'false',
  })
  for (const word of command) query.append('command', word)
  const path = `${api.path(PODS, pod)}/exec?${query}`
  opening += 1
  const crowded = opening > AT_ONCE
  try {
    return await gate(async () => {
      if (crowded) await sleep(Math.random() * JITTER_MS, undefined, { signal })
      return createExecStream(await api.connect(path, PROTOCOL, signal), pace.open(pod))
    }, signal)
  } catch (error) {
    if (error instanceof SandboxError || signal?.aborted !== true) throw error
    throw new SandboxError('cancelled', 'Stopped waiting for a stream to the sandbox.', { cause: error })
  } finally {
    opening -= 1
  }
}

/** `socket` is open and paused. `pace` is closed with the stream. */
function createExecStream(socket: WebSocket, pace: PacedStream): Duplex {
  const stream = new ExecStream(socket, pace)
  // An error without a listener would end the process.
  stream.on('error', () => {})
  stream.begin()
  return stream
}

class ExecStream extends Duplex {
  readonly #socket: WebSocket
  readonly #pace: PacedStream
  readonly #end = new EndReport()
  /** The reader has as much as it wants. */
  #full = false
  /** Messages that were received and that the pace has not permitted yet. */
  #ahead = 0
  /** Completes the write that waits for the pace. */
  #waiting: ((error?: Error | null) => void) | undefined

  constructor(socket: WebSocket, pace: PacedStream) {
    super()
    this.#socket = socket
    this.#pace = pace
  }

  begin(): void {
    const socket = this.#socket
    socket.on('message', (message, isBinary) => {
      if (!Buffer.isBuffer(message) || !isBinary)
        this.destroy(new SandboxError('protocol', 'The cluster sent text on the stream to the sandbox'))
      else this.#received(message)
    })
    socket.on('error', (cause) => this.destroy(this.#end.error('', cause)))
    socket.on('close', (code, reason) => this.destroy(this.#end.error(`${code} ${reason.toString()}`)))
    if (socket.readyState === socket.OPEN) socket.resume()
    else this.destroy(this.#end.error(''))
  }

  override _read(): void {
    this.#full = false
    this.#flow()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send(chunk, done)
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk)), done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.send(Buffer.of(CHANNEL.close, CHANNEL.stdin), done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#pace.close()
    this.#socket.terminate()
    this.#waiting?.(error)
    done(error)
  }

  /** Reads while the reader wants more and the pace permits it. */
  #flow(): void {
    if (this.#full || this.#ahead > 0) this.#socket.pause()
    else this.#socket.resume()
  }

  #received(message: Buffer): void {
    // Messages that arrived together are all delivered, also after the one that ended the stream.
    if (this.destroyed) return
    const payload = message.subarray(1)
    if (message[0] !== CHANNEL.stdout) this.#end.add(message[0], payload)
    else if (payload.length > 0 && !this.push(payload)) this.#full = true
    this.#ahead += 1
    this.#pace.request(message.length, () => {
      this.#ahead -= 1
      this.#flow()
    })
    this.#flow()
  }

  /** Sends piece by piece, each after the system has taken the one before. */
  #send(bytes: Buffer, done: (error?: Error | null) => void): void {
    const piece = bytes.subarray(0, PIECE_BYTES)
    const rest = bytes.subarray(PIECE_BYTES)
    const message = Buffer.concat([Buffer.of(CHANNEL.stdin), piece])
    this.#waiting = done
    this.#pace.request(message.length, () => {
      this.#waiting = undefined
      this.#socket.send(message, (error) => {
        if (error) done(this.#end.error('', error))
        else if (rest.length > 0) this.#send(rest, done)
        else done()
      })
    })
  }
}

/** Everything but stdout: for the words of the stream's end. */
class EndReport {
  #stderr = Buffer.alloc(0)
  #status = Buffer.alloc(0)
  #ignored = 0

  /** Messages without a channel, and those of unknown ones, are counted and otherwise ignored. */
  add(channel: number | undefined, payload: Buffer): void {
    if (channel === CHANNEL.stderr)
      this.#stderr = Buffer.concat([this.#stderr, payload]).subarray(-KEPT_BYTES)
    else if (channel === CHANNEL.status)
      this.#status = Buffer.concat([this.#status, payload]).subarray(0, KEPT_BYTES)
    else this.#ignored += 1
  }

  /** `close`: code and reason, where the other side closed it. */
  error(close: string, cause?: unknown): SandboxError {
    const details = [
      statusMessage(this.#status.toString()),
      this.#stderr.toString().slice(-STDERR_CHARACTERS),
      close && `closed with ${close}`,
      this.#ignored > 0 && `${this.#ignored} messages of unknown channels`,
      cause instanceof Error && cause.message,
    ].flatMap((detail) => (detail ? [printable(detail)] : []))
    return new StreamEnded(details.join('; '), exitCodeOf(this.#status.toString()), cause)
  }
}

/** The status is a JSON object with a message, or whatever a proxy makes of it. */
function statusMessage(text: string): string {
  try {
    const status: unknown = JSON.parse(text)
    const has = typeof status === 'object' && status !== null
    if (has && 'message' in status && typeof status.message === 'string') return status.message
    if (has && 'status' in status && typeof status.status === 'string') return `status ${status.status}`
  } catch {
    // Not JSON: the text is the message.
  }
  return text
}

function exitCodeOf(status: string): number | undefined {
  const [, code] = /"reason":\s*"ExitCode",\s*"message":\s*"(\d+)"/.exec(status) ?? []
  return code === undefined ? undefined : Number(code)
}

function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim()
}
