/**
 * One command of a person over a byte stream of the agent: stdin in, output out, both at the pace
 * of their readers.
 */
import { EXT } from '@sandlot/shared/acp/meta'
import { Queue } from '@sandlot/shared/async/streams'
import {
  END_OF_STDIN,
  EXEC_STREAM,
  EXEC_WINDOW_BYTES,
  type ExecEnd,
  type ExecNotice,
  execNotice,
  type execParams,
} from '@sandlot/shared/workspace/exec'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { WebSocket } from 'ws'
import type { z } from 'zod'
import type { Agents } from './agents.ts'

const PIECE_BYTES = 64 * 1024
/** Output that waits for its reader above which the agent is not read, and below which it is. */
const MOST_WAITING_BYTES = 1024 * 1024
const FEW_WAITING_BYTES = 256 * 1024

export interface ExecOutput {
  stream: keyof typeof EXEC_STREAM
  data: Buffer
}

interface ExecOptions {
  agent: Agents
  params: z.input<typeof execParams>
  /** Absent: it is empty. */
  stdin: AsyncIterable<Uint8Array> | undefined
  /** Ends the command. */
  gone: AbortSignal
}

/**
 * Yields `started` when the command runs, then its output; returns how it ended. Throws
 * `SandlotError`: before `started` why it does not run, later that the agent went away. Leaving it
 * early ends the command and everything that it started.
 */
export async function* runExec({
  agent,
  params,
  stdin,
  gone,
}: ExecOptions): AsyncGenerator<'started' | ExecOutput, ExecEnd> {
  const socket = await agent.openStream(EXT.exec, params)
  const leave = (): void => socket.terminate()
  gone.addEventListener('abort', leave, { once: true })
  try {
    if (gone.aborted) leave()
    const received = new ExecMessages(socket)
    void sendStdin(socket, received, stdin)
    for await (const message of received.messages()) {
      if ('data' in message) yield message
      else if (message.type === 'refused') throw new SandlotError(message.code, message.message)
      else if (message.type === 'started') yield 'started'
      else if (message.type === 'ended') return message.end
    }
    throw new SandlotError('agent_unavailable', 'The agent went away before the command ended.')
  } finally {
    gone.removeEventListener('abort', leave)
    leave()
  }
}

type ExecMessage = ExecOutput | Exclude<ExecNotice, { type: 'taken' }>

class ExecMessages {
  readonly #socket: WebSocket
  readonly #queue = new Queue<ExecMessage>()
  #waiting = 0
  #taken = 0
  #closed = false
  #wake: () => void = () => undefined

  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on('message', (data: Buffer, isBinary) => (isBinary ? this.#output(data) : this.#notice(data)))
    // Always followed by `close`.
    socket.on('error', () => socket.terminate())
    socket.once('close', () => {
      this.#closed = true
      this.#queue.end()
      this.#wake()
    })
    socket.resume()
  }

  async *messages(): AsyncGenerator<ExecMessage, void> {
    for await (const message of this.#queue) {
      yield message
      if (!('data' in message)) continue
      this.#waiting -= message.data.length
      if (this.#waiting < FEW_WAITING_BYTES && this.#socket.isPaused) this.#socket.resume()
    }
  }

  /** Resolves with false when no more may be sent at all. */
  async mayHave(bytes: number): Promise<boolean> {
    while (!this.#closed && bytes - this.#taken > EXEC_WINDOW_BYTES)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    return !this.#closed
  }

  #output(data: Buffer): void {
    const stream = data[0] === EXEC_STREAM.stderr ? 'stderr' : 'stdout'
    this.#waiting += data.length - 1
    this.#queue.push({ stream, data: data.subarray(1) })
    if (this.#waiting > MOST_WAITING_BYTES) this.#socket.pause()
  }

  #notice(data: Buffer): void {
    const notice = execNotice.parse(JSON.parse(data.toString('utf8')))
    if (notice.type === 'taken') {
      this.#taken = notice.bytes
      this.#wake()
    } else this.#queue.push(notice)
  }
}

/** Never rejects: where the body of the request breaks, so does stdin. */
async function sendStdin(
  socket: WebSocket,
  received: ExecMessages,
  stdin: AsyncIterable<Uint8Array> = noBytes(),
): Promise<void> {
  let sent = 0
  try {
    for await (const chunk of stdin)
      for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
        const piece = chunk.subarray(at, at + PIECE_BYTES)
        sent += piece.length
        if (!(await received.mayHave(sent))) return
        socket.send(piece)
      }
    if (await received.mayHave(sent)) socket.send(END_OF_STDIN)
  } catch {
    // The client has gone in the middle of its body.
    socket.terminate()
  }
}

async function* noBytes(): AsyncGenerator<Uint8Array, void> {
  // Stdin is at its end.
}
