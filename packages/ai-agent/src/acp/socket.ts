/**
 * The agent's Unix socket, and where it also listens with TLS: ACP over WebSocket at `/acp`, byte
 * streams at `/stream/<ticket>`, and `GET /status`.
 */
import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { ListenOptions, Server as NetServer } from 'node:net'
import { dirname } from 'node:path'
import type { Duplex } from 'node:stream'
import type { AnyMessage } from '@agentclientprotocol/sdk'
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import { type AgentStatus, STREAM_PATH } from '@sandlot/shared/acp/meta'
import { type JsonRpcSocket, jsonRpcSocket } from '@sandlot/shared/node/json-rpc-socket'
import { messageOf } from '@sandlot/shared/base/errors'
import { WebSocketServer, WebSocket } from 'ws'
import type { ToolListing } from '../config/tool-listing.ts'
import type { Log } from '../log.ts'
import type { ByteStreams } from './byte-streams.ts'
import { type TlsListen, tlsServer } from './tls.ts'
import { MAX_MESSAGE_BYTES, readMessage } from './incoming.ts'

export const ACP_PATH = '/acp'
/** Milliseconds for clients to take what is still on its way when the agent goes. */
const CLOSE_MS = 1_000
/** The most bytes of one message of a byte stream. */
const MAX_PIECE_BYTES = 1024 * 1024

interface SocketServerParts {
  /**
   * Absolute path of the socket. Call only while holding the agent's lock: a file that is there is
   * removed.
   */
  path: string
  /** Serve one client. */
  serve: (stream: JsonRpcSocket<AnyMessage>) => void
  streams: ByteStreams
  status: () => Promise<AgentStatus>
  /** The tools there are, for the operator. */
  listTools: () => Promise<ToolListing>
  /** A further listener. */
  tls?: TlsListen | undefined
  log: Log
}

interface SocketServer {
  /** Resolves when no client is connected, or with `signal`. */
  idle(signal: AbortSignal): Promise<void>
  /** Ends every connection and removes the socket. */
  close(): Promise<void>
}

/** Listens when it resolves. The socket is for its owner and group. */
export async function listenOnSocket(parts: SocketServerParts): Promise<SocketServer> {
  const { path, serve, streams, tls, log } = parts
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 })
  rmSync(path, { force: true })

  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
  })
  const byteSockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_PIECE_BYTES,
    perMessageDeflate: false,
  })
  const onRequest = (request: IncomingMessage, response: ServerResponse): void =>
    void answer(request, response, parts)
  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    // Without a listener an error of a socket that is not upgraded yet would end the process.
    socket.on('error', (error) => {
      if (!isGone(error)) log.warn({ error: error.message }, 'a connection broke')
    })
    const requested = pathOf(request)
    const open = requested.startsWith(STREAM_PATH)
      ? streams.take(requested.slice(STREAM_PATH.length))
      : undefined
    if (open !== undefined) return byteSockets.handleUpgrade(request, socket, head, (opened) => open(opened))
    if (requested !== ACP_PATH) {
      socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
      return
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => serve(webSocketStream(webSocket, socket)))
  }
  const server = createServer(onRequest).on('upgrade', onUpgrade)
  await listen(server, { path })
  chmodSync(path, 0o660)
  const secure = tls === undefined ? [] : [tlsServer(tls, { request: onRequest, upgrade: onUpgrade }, log)]
  for (const one of secure) await listen(one, { host: tls?.host, port: tls?.port })
  const servers = [server, ...secure]
  return {
    async idle(signal) {
      const stopped = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      while (sockets.clients.size > 0 && !signal.aborted)
        await Promise.race([Promise.all([...sockets.clients].map(whenClosed)), stopped])
    },
    close: async () => {
      const closed = servers.map((one) => new Promise((resolve) => one.close(resolve)))
      // Messages under way, such as the end of a prompt, are sent first.
      const clients = [...sockets.clients, ...byteSockets.clients]
      const gone = clients.map(whenClosed)
      for (const client of clients) client.close(1001, 'the agent is going away')
      await orTimeout(Promise.all(gone), CLOSE_MS, undefined)
      for (const client of clients) client.terminate()
      for (const one of servers) one.closeAllConnections()
      await Promise.all(closed)
    },
  }
}

/** The other end was closed or killed, as that of every page where a service ends. */
function isGone(error: Error): boolean {
  return 'code' in error && (error.code === 'EPIPE' || error.code === 'ECONNRESET')
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  parts: SocketServerParts,
): Promise<void> {
  try {
    const path = pathOf(request)
    if (path !== '/status' && path !== '/tools')
      return send(response, 404, { code: 'not_found', message: 'There is nothing here.' })
    if (request.method !== 'GET')
      return send(response, 405, { code: 'bad_request', message: 'Only GET is possible here.' })
    send(response, 200, await (path === '/tools' ? parts.listTools() : parts.status()))
  } catch (error) {
    parts.log.warn({ error: messageOf(error) }, 'the status could not be read')
    send(response, 500, {
      code: 'internal',
      message: 'The status could not be read; the log has the details.',
    })
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '').split('?')[0] ?? ''
}

function listen(server: NetServer, at: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(at, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/**
 * Resolves when it is closed. Not `events.once`, which rejects where an error comes before the
 * close: it has gone either way.
 */
export async function whenClosed(socket: WebSocket): Promise<void> {
  if (socket.readyState === WebSocket.CLOSED) return
  await new Promise<void>((resolve) => void socket.once('close', () => resolve()))
}

// ── JSON-RPC over a WebSocket ───────────────────────────────────────────────────────────────────

/** Messages that may wait for their handler before the client is read no further. */
const MAX_WAITING_MESSAGES = 64

/** One WebSocket as the SDK's stream. `connection`: what `socket` was made from. */
export function webSocketStream(socket: WebSocket, connection: Duplex): JsonRpcSocket<AnyMessage> {
  return jsonRpcSocket<AnyMessage>(socket, {
    connection,
    maxWaiting: MAX_WAITING_MESSAGES,
    receive(data, isBinary, deliver) {
      const incoming = readMessage(isBinary ? '' : data.toString('utf8'))
      if ('answer' in incoming) socket.send(JSON.stringify(incoming.answer))
      else deliver(incoming.message)
    },
  })
}
