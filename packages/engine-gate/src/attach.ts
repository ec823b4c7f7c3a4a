/** The only upgrade: an attach to our container, spliced to the engine's stream. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

import { note, plainAnswer } from './answers.ts'
import type { Audit } from './audit.ts'
import type { Attached, Engine } from './engine.ts'
import type { Operations } from './operations.ts'
import { forbidden, Refusal } from './refusal.ts'
import { routeOf } from './routes.ts'

/** Bytes that a client may send before the answer to its attach. Ours sends none. */
const MOST_EARLY_BYTES = 64 * 1024
const FORGOTTEN_MS = 10 * 60_000
const MOST_ANSWER_BYTES = 64 * 1024

interface AttachRequest {
  request: IncomingMessage
  socket: Socket
  head: Buffer
  engine: Engine
  operations: Operations
  audit: Audit
}

/** Resolves when the stream has ended and everything is freed; never rejects. */
export async function attachThrough(given: AttachRequest): Promise<void> {
  const { request, socket, head, audit } = given
  socket.setTimeout(0)
  socket.on('error', () => {}) // `close` follows, and frees everything
  const early = watchEarly(socket, head)
  try {
    const upstream = await dial(given, early.disconnected)
    const rest = early.stop()
    if (early.disconnected.aborted) {
      upstream.socket.destroy()
      return
    }
    socket.write(
      'HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n',
    )
    if (upstream.head.length > 0) upstream.socket.unshift(upstream.head)
    if (rest.length > 0) socket.unshift(rest)
    endWhenForgotten(socket, upstream.socket)
    await splice(socket, upstream.socket)
  } catch (error) {
    early.stop()
    if (early.disconnected.aborted) {
      socket.destroy()
      return
    }
    const { status, message } = note(audit, request, error)
    // Closed once the answer is written; further input of the client is dropped.
    socket.end(plainAnswer(status, message), () => socket.destroy())
  }
}

/**
 * Until a write, a disconnected client looks like an idle one. A client that ended its side and
 * then receives nothing for long is considered disconnected.
 */
function endWhenForgotten(client: Socket, container: Socket): void {
  client.once('end', () => container.setTimeout(FORGOTTEN_MS, () => container.destroy()))
}

async function dial(
  { request, engine, operations }: AttachRequest,
  signal: AbortSignal,
): Promise<Attached & { kind: 'open' }> {
  const route = routeOf(request.method ?? '', request.url ?? '')
  if (route.operation !== 'attach') throw forbidden('only an attach is an upgrade')
  const { headers } = request
  if (headers.upgrade !== 'tcp') throw forbidden('an attach is an upgrade to tcp')
  if (headers['transfer-encoding'] !== undefined || !/^0?$/.test(headers['content-length'] ?? ''))
    throw forbidden('an attach has no body')
  const path = await operations.attachPath(route, signal)
  const answer = await engine.upgrade({ method: 'POST', path, signal })
  if (answer.kind === 'open') return answer
  throw await refusalOf(answer.answer)
}

/** The engine's own refusal with its message. */
async function refusalOf(answer: IncomingMessage): Promise<Refusal> {
  let text = ''
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    text += chunk.toString('utf8')
    if (text.length > MOST_ANSWER_BYTES) break
  }
  answer.destroy()
  const message =
    /"message":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? (text.trim().slice(0, 500) || 'no message')
  return new Refusal(answer.statusCode === 404 ? 404 : 502, message)
}

/** Reads until the stream is open: only a read detects that a client has disconnected. */
function watchEarly(socket: Socket, head: Buffer): { disconnected: AbortSignal; stop: () => Buffer } {
  const controller = new AbortController()
  const chunks = [head]
  let bytes = head.length
  const leave = (): void => controller.abort()
  const read = (): void => {
    for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > MOST_EARLY_BYTES) leave()
    }
  }
  socket.on('readable', read).once('end', leave).once('close', leave)
  return {
    disconnected: controller.signal,
    stop() {
      socket.off('readable', read).off('end', leave).off('close', leave)
      return Buffer.concat(chunks)
    },
  }
}

/**
 * Joins two open streams until both directions have ended. Each direction has its own back-pressure
 * and its own end: a half-close is passed on as a half-close. A broken side destroys the other.
 * Resolves when both are closed; never rejects.
 */
async function splice(a: Duplex, b: Duplex): Promise<void> {
  a.pipe(b)
  b.pipe(a)
  await Promise.all([follow(a, b), follow(b, a)])
}

/** Closes `other` after `one`: at once after a failure, else after its pending writes. */
function follow(one: Duplex, other: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const closed = (): void => {
      // Closed before its end was read: bytes were lost, which must not look like an end to the
      // other side.
      if (!one.readableEnded || !one.writableFinished) other.destroy()
      else finish(other)
      resolve()
    }
    // The peer reports the error; `close` follows it.
    one.on('error', () => {})
    if (one.destroyed) closed()
    else one.once('close', closed)
  })
}

/** Flushes pending writes, then destroys it even if its peer never closes. */
function finish(stream: Duplex): void {
  if (stream.destroyed) return
  if (stream.writableFinished) stream.destroy()
  else stream.end(() => stream.destroy())
}
