/** `sandlot acp` beside a running agent: lines of stdin to its socket, its messages to stdout. */
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { LineSplitter, TOO_LONG } from '@sandlot/shared/node/line-splitter'
import { MAX_MESSAGE_BYTES, readMessage } from './incoming.ts'
import { ACP_PATH, whenClosed } from './socket.ts'

/** The agent may have taken its lock and not listen yet. */
const CONNECT_MS = 15_000

interface RelayStreams {
  input: Readable
  output: Writable
}

/**
 * Relays until stdin ends or stdout is closed (resolves with `'client_left'`; the agent's work goes
 * on) or the agent disconnects (`'agent_left'`). Rejects when the agent cannot be reached.
 */
export async function relay(
  socketPath: string,
  { input, output }: RelayStreams,
): Promise<'client_left' | 'agent_left'> {
  const socket = await connect(`ws+unix://${socketPath}:${ACP_PATH}`)
  const agentLeft = whenClosed(socket).then(() => 'agent_left' as const)
  const unread = Promise.withResolvers<'client_left'>()
  output.once('error', () => unread.resolve('client_left'))
  const write = (line: string): void => {
    if (output.write(`${line}\n`)) return
    socket.pause()
    output.once('drain', () => socket.resume())
  }
  socket.on('message', (data: Buffer) => write(data.toString('utf8')))
  const ended = send(input, socket, write)
  const end = await Promise.race([agentLeft, ended, unread.promise])
  socket.close()
  return end
}

/** Resolves with the side that disconnected first. */
async function send(
  input: Readable,
  socket: WebSocket,
  answer: (line: string) => void,
): Promise<'client_left' | 'agent_left'> {
  const lines = new LineSplitter(MAX_MESSAGE_BYTES)
  const pass = async (line: ReturnType<LineSplitter['rest']>): Promise<void> => {
    if (line === undefined || (line !== TOO_LONG && line.trim() === '')) return
    // The agent reports what is wrong with any other line.
    if (line !== TOO_LONG) return new Promise((resolve) => socket.send(line, () => resolve()))
    const read = readMessage(line)
    if ('answer' in read) answer(JSON.stringify(read.answer))
  }
  for await (const chunk of input as AsyncIterable<Uint8Array>) {
    for (const line of lines.push(chunk)) {
      if (socket.readyState !== WebSocket.OPEN) return 'agent_left'
      await pass(line)
    }
  }
  await pass(lines.rest())
  return 'client_left'
}

async function connect(url: string): Promise<WebSocket> {
  const until = performance.now() + CONNECT_MS
  for (;;) {
    const socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: MAX_MESSAGE_BYTES })
    // Always followed by `close`, which ends the relay. From the beginning: an error may come
    // together with the opening.
    socket.on('error', () => socket.terminate())
    try {
      await once(socket, 'open')
      return socket
    } catch (error) {
      socket.terminate()
      if (performance.now() >= until) {
        throw new Error('The running agent does not answer on its socket.', { cause: error })
      }
      await sleep(200)
    }
  }
}
