/**
 * Limits of connections before sign-in: their number, the time for a request, the bytes read after
 * a refusal.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'

export interface ConnectionLimits {
  /** Open connections, WebSockets among them; a further one is closed at once. */
  connections: number
  /** Milliseconds until a head is there. */
  headMs: number
  /** Milliseconds until head and body are there. What takes longer comes in several requests. */
  requestMs: number
  /** Bytes of a body that are read after an early answer: many clients read only after sending. */
  unreadBytes: number
}

export const DEFAULT_CONNECTION_LIMITS: ConnectionLimits = {
  connections: 10_000,
  headMs: 20_000,
  requestMs: 300_000,
  unreadBytes: 16 * 1024 * 1024,
}

/** Options for `createServer`. Node looks at the times of its connections this often. */
export function timeLimits({ headMs, requestMs }: ConnectionLimits) {
  const connectionsCheckingInterval = Math.min(5_000, headMs)
  return { headersTimeout: headMs, requestTimeout: requestMs, connectionsCheckingInterval }
}

export function limitConnections(server: Server, { connections, unreadBytes }: ConnectionLimits): void {
  server.maxConnections = connections
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    response.once('finish', () => {
      if (!request.complete) closeBehind(request, unreadBytes)
    })
  })
}

/** Until the rest of this body has been read: what comes behind it is another request's. */
function closeBehind(request: IncomingMessage, bytes: number): void {
  const { socket } = request
  const before = socket.bytesRead
  const count = (): void => {
    if (socket.bytesRead - before > bytes) socket.destroy()
  }
  socket.on('data', count)
  request.once('close', () => socket.off('data', count))
}
