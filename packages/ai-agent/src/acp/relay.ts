/** `sandlot acp` beside a running agent: lines of stdin to its socket, its messages to stdout. */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { ACP_PATH } from './socket-server.ts'
import { MAX_MESSAGE_BYTES } from './web-socket-stream.ts'

/** The agent may have taken its lock and not listen yet. */
const CONNECT_MS = 15_000

export interface RelayStreams {
  input: Readable
  output: Writable
}

/**
 * Relay until stdin ends (resolves `'input_ended'`; the agent's work goes on) or the agent goes away (`'agent_left'`).
 * Rejects when the agent cannot be reached.
 */
export async function relay(
  socketPath: string,
  streams: RelayStreams,
): Promise<'input_ended' | 'agent_left'> {
  const socket = await connect(`ws+unix://${socketPath}:${ACP_PATH}`)
  const left = once(socket, 'close').then(() => 'agent_left' as const)
  socket.on('message', (data: Buffer) => {
    const more = streams.output.write(`${data.toString('utf8')}\n`)
    if (more) return
    socket.pause()
    streams.output.once('drain', () => socket.resume())
  })
  const ended = send(streams.input, socket).then(() => 'input_ended' as const)
  const end = await Promise.race([left, ended])
  socket.close()
  return end
}

async function send(input: Readable, socket: WebSocket): Promise<void> {
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    if (line.trim() === '') continue
    if (socket.readyState !== WebSocket.OPEN) return
    await new Promise<void>((resolve) => socket.send(line, () => resolve()))
  }
}

async function connect(url: string): Promise<WebSocket> {
  const until = performance.now() + CONNECT_MS
  for (;;) {
    const socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: MAX_MESSAGE_BYTES })
    try {
      await once(socket, 'open')
      // Always followed by `close`, which ends the relay.
      socket.on('error', () => socket.terminate())
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
