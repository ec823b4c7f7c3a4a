/**
 * One ACP connection to ai-agent: a WebSocket (over its Unix socket, or a URL), one JSON-RPC
 * message per text message. The SDK makes requests and matches answers. Notifications do not go
 * through it: it strips fields that its schema does not know, and it runs handlers some microtasks
 * after the answer that follows them on the wire, so a replay would end before its last event. They
 * are passed on here unchanged, in wire order.
 */
import { X509Certificate } from 'node:crypto'
import type { ConnectionOptions, PeerCertificate } from 'node:tls'
import {
  type AnyMessage,
  type ClientContext,
  PROTOCOL_VERSION,
  RequestError,
  client,
  methods,
} from '@agentclientprotocol/sdk'
import { STREAM_PATH, rpcErrorData } from '@sandlot/shared/acp/meta'
import { type JsonRpcSocket, jsonRpcSocket } from '@sandlot/shared/node/json-rpc-socket'
import { type ErrorCode, SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import { type ClientOptions, WebSocket } from 'ws'
import { z } from 'zod'
import { Recent } from '@sandlot/shared/async/recent'
import { keepAlive } from '@sandlot/shared/node/keep-alive'

/** The address of an agent. */
export interface AgentPlace {
  url: string
  /**
   * The agent's own certificate in PEM: no other is accepted. Absent: there is no TLS, or a usual
   * one.
   */
  certificate?: string | undefined
  /** Shown to an agent of that certificate. */
  token?: string | undefined
}

/** Must not throw; must not wait. */
export type OnNotification = (method: string, params: unknown) => void

export interface AgentConnection {
  /**
   * Throws `SandlotError`: the agent's error, or `agent_unavailable` when the connection was lost;
   * then it is unknown whether the request took effect.
   */
  request(method: string, params: object): Promise<unknown>
  notify(method: string, params: object): Promise<void>
  /**
   * Stops reading until `resume`, so that the agent waits. A pause longer than two pings loses the
   * connection.
   */
  pause(): void
  resume(): void
  /** Resolves when the connection has closed, at either end. */
  readonly closed: Promise<void>
  close(): void
}

/** After a restart many readers connect at once, and are accepted one after another. */
const HANDSHAKE_TIMEOUT_MS = 30_000
/** A settled event holds at most what a model or a user saw, but a plan or a diff may be large. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024
const LARGE_MESSAGE_BYTES = 16 * 1024

const initialized = z.looseObject({ protocolVersion: z.literal(PROTOCOL_VERSION) })

/**
 * `sessionChanges`: receive changes of the session lists of all users. Throws `agent_unavailable`.
 */
export async function connectAgent(
  place: AgentPlace,
  onNotification: OnNotification,
  { sessionChanges = false }: { sessionChanges?: boolean } = {},
): Promise<AgentConnection> {
  const socket = new WebSocket(place.url, { ...clientOptions(place), maxPayload: MAX_MESSAGE_BYTES })
  const reading = new PausableSocket(socket)
  const stream = streamOf(socket, onNotification, reading)
  await opened(socket)
  keepAlive(socket)
  const connection = client({ name: 'sandlot-service' }).connect(stream)
  const made: AgentConnection = {
    request: (method, params) => request(connection.agent, connection.signal, method, params),
    async notify(method, params) {
      try {
        await connection.agent.notify(method, params)
      } catch (error) {
        throw unavailable(error)
      }
    },
    pause: () => reading.pause(),
    resume: () => reading.resume(),
    closed: connection.closed,
    close() {
      connection.close()
      stream.flush()
      socket.terminate()
    },
  }
  try {
    const answer = await made.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: { _meta: { sandlot: { version: 1, sessionChanges } } },
      clientInfo: { name: 'sandlot-service', version: '0.1.0' },
    })
    initialized.parse(answer)
  } catch (error) {
    made.close()
    throw unavailable(error)
  }
  return made
}

/**
 * The byte stream of a ticket. It is paused: who gets it resumes it. Throws `agent_unavailable`,
 * also when the ticket opens nothing any more.
 */
export async function openAgentStream(place: AgentPlace, ticket: string): Promise<WebSocket> {
  const beside = place.url.slice(0, place.url.lastIndexOf('/'))
  const socket = new WebSocket(`${beside}${STREAM_PATH}${ticket}`, clientOptions(place))
  socket.once('open', () => socket.pause())
  await opened(socket)
  return socket
}

function clientOptions({ certificate, token }: AgentPlace): ClientOptions {
  const options: ClientOptions = { perMessageDeflate: false, handshakeTimeout: HANDSHAKE_TIMEOUT_MS }
  if (certificate === undefined) return options
  if (token !== undefined) options.headers = { authorization: `Bearer ${token}` }
  // `ws` passes on what Node takes, which its types do not know.
  return Object.assign(options, pinnedTo(certificate))
}

/** By the certificate alone: what name the agent has, and who else vouches for it, is no matter. */
function pinnedTo(certificate: string): ConnectionOptions {
  const { raw } = new X509Certificate(certificate)
  return {
    ca: certificate,
    minVersion: 'TLSv1.3',
    checkServerIdentity: (_host: string, peer: PeerCertificate) =>
      peer.raw.equals(raw) ? undefined : new Error('the agent has another certificate than it published'),
  }
}

async function request(
  agent: ClientContext,
  closed: AbortSignal,
  method: string,
  params: object,
): Promise<unknown> {
  try {
    return await agent.request(method, params)
  } catch (error) {
    throw closed.aborted ? unavailable(error) : toSandlotError(error)
  }
}

function unavailable(cause: unknown): SandlotError {
  return new SandlotError(
    'agent_unavailable',
    'The agent is not reachable just now. Try again in a moment.',
    { cause },
  )
}

async function opened(socket: WebSocket): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve)
      socket.once('error', reject)
      socket.once('close', () => reject(new Error('closed before it was open')))
    })
  } catch (error) {
    socket.terminate()
    throw unavailable(error)
  }
}

/** A socket that is paused by its owner, and between the slices of a long history. */
class PausableSocket {
  readonly #socket: WebSocket
  #paused = false

  constructor(socket: WebSocket) {
    this.#socket = socket
  }

  pause(): void {
    this.#paused = true
    this.#socket.pause()
  }

  resume(): void {
    this.#paused = false
    this.#socket.resume()
  }

  /**
   * A long history is many large messages: without this, one turn of the event loop would read all
   * of them.
   */
  readInSlices(): void {
    this.#socket.pause()
    void pauseWhenDue().then(() => {
      if (!this.#paused) this.#socket.resume()
    })
  }
}

/** Bytes of a notification that is kept for the next reader of its session. */
const MAX_REPEATED_BYTES = 16 * 1024
/**
 * An event of a session comes once for each of its readers, and is parsed once for all of them.
 * No reader changes it.
 */
const repeated = new Recent<string, AnyMessage>()

/** The SDK's side of the socket: everything but notifications. */
function streamOf(
  socket: WebSocket,
  onNotification: OnNotification,
  reading: PausableSocket,
): JsonRpcSocket<AnyMessage> {
  return jsonRpcSocket<AnyMessage>(socket, {
    receive(data, _isBinary, deliver) {
      try {
        const text = data.toString('utf8')
        const known = data.length <= MAX_REPEATED_BYTES ? repeated.find(text) : undefined
        const message = known ?? (JSON.parse(text) as AnyMessage)
        if ('method' in message && !('id' in message)) {
          if (known === undefined && data.length <= MAX_REPEATED_BYTES) repeated.keep(text, message)
          onNotification(message.method, message.params)
        } else deliver(message)
        if (data.length >= LARGE_MESSAGE_BYTES) reading.readInSlices()
      } catch (error) {
        // Not JSON-RPC: nothing after it can be trusted.
        socket.close(1002, messageOf(error).slice(0, 100))
      }
    },
  })
}

const CODE_OF: Record<number, ErrorCode> = {
  [-32_600]: 'bad_request',
  [-32_602]: 'bad_request',
  [-32_601]: 'not_implemented',
  [-32_002]: 'not_found',
}

const TEXT_OF: Partial<Record<ErrorCode, string>> = {
  bad_request: 'The agent did not accept this request.',
  not_implemented: 'This agent cannot do that.',
  not_found: 'There is no such chat.',
}

/** An error with our code in its data is shown as the agent wrote it; of others only the kind. */
function toSandlotError(error: unknown): Error {
  if (!(error instanceof RequestError)) return error instanceof Error ? error : new Error(String(error))
  const data = rpcErrorData.safeParse(error.data)
  if (data.success) return new SandlotError(data.data.code, error.message, { cause: error })
  const code = CODE_OF[error.code]
  if (code === undefined) return error
  return new SandlotError(code, TEXT_OF[code] ?? 'The agent refused.', { cause: error })
}
