/** Connections of a preview into the sandbox, through the agent. */
import { Agent, type ClientRequest } from 'node:http'
import type { Duplex } from 'node:stream'
import { EXT } from '@sandlot/shared/acp/meta'
import type { PortsAsk } from '@sandlot/shared/workspace/ports'
import { createWebSocketStream, type WebSocket } from 'ws'
import type { Agents } from '../agent/agents.ts'
import { agentUserOf } from '../auth/agent-user.ts'
import type { Pass, Previews } from './previews.ts'

/** Milliseconds without a byte from inside after which a connection is taken for forgotten. */
const IDLE_MS = 30 * 60_000
/** … and one that no request uses. */
const FREE_MS = 10_000
/** The most connections of one browser at once; further requests wait for one of them. */
const MOST_SOCKETS = 12

const MOST_LISTENERS = 20

export interface Upstreams {
  /** Throws `not_found` where nothing listens, `rate_limited`, `agent_unavailable`. */
  open(pass: Pass): Promise<Duplex>
}

export function upstreams(agent: Agents, previews: Previews, idleMs = IDLE_MS): Upstreams {
  return {
    async open(pass) {
      const leave = previews.connecting(pass)
      try {
        const user = agentUserOf(pass.caller)
        const ask = { do: 'connect', port: pass.port } satisfies PortsAsk
        const socket = await agent.openStream(EXT.ports, { user, ask })
        const stream = createWebSocketStream(socket)
        // A WebSocket that is joined, and all that may end it: more than Node takes for usual.
        stream.setMaxListeners(MOST_LISTENERS)
        stream.once('close', leave)
        // Requests have their own listeners; the socket may fail after the stream has ended.
        stream.on('error', () => {})
        socket.on('error', () => {})
        endWithPass(stream, pass)
        endWhenIdle(socket, stream, idleMs)
        socket.resume()
        return stream
      } catch (error) {
        leave()
        throw error
      }
    },
  }
}

function endWithPass(stream: Duplex, { ended }: Pass): void {
  const end = (): void => void stream.destroy()
  ended.addEventListener('abort', end)
  stream.once('close', () => ended.removeEventListener('abort', end))
  if (ended.aborted) end()
}

function endWhenIdle(socket: WebSocket, stream: Duplex, idleMs: number): void {
  const timer = setTimeout(() => stream.destroy(), idleMs).unref()
  socket.on('message', () => timer.refresh())
  stream.once('close', () => clearTimeout(timer))
}

/** For requests: nothing comes any more, so no answer to another one does. */
function endWithPeer(stream: Duplex): Duplex {
  return stream.once('end', () => stream.destroy())
}

type Connected = (error: Error | null, stream: Duplex) => void

/** Keeps connections for the requests of one browser. */
export class PreviewAgent extends Agent {
  readonly #open: () => Promise<Duplex>
  readonly #free = new WeakMap<Duplex, NodeJS.Timeout>()

  constructor(open: () => Promise<Duplex>) {
    super({ keepAlive: true, maxSockets: MOST_SOCKETS, maxFreeSockets: MOST_SOCKETS })
    this.#open = open
  }

  override createConnection(_options: unknown, done?: Connected): undefined {
    void this.#connect(done)
  }

  async #connect(done: Connected | undefined): Promise<void> {
    const [opened] = await Promise.allSettled([this.#open()])
    if (opened.status === 'fulfilled') done?.(null, endWithPeer(opened.value))
    // Node’s types know no failure without a stream.
    else (done as ((failed: unknown) => void) | undefined)?.(opened.reason)
  }

  /** The stream is none of the network, which is what Node’s own would treat it as. */
  override keepSocketAlive(stream: Duplex): boolean {
    this.#free.set(stream, setTimeout(() => stream.destroy(), FREE_MS).unref())
    return true
  }

  override reuseSocket(stream: Duplex, request: ClientRequest): void {
    clearTimeout(this.#free.get(stream))
    request.reusedSocket = true
  }
}
