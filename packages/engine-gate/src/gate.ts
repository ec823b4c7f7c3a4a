/** HTTP server that passes allowed requests on to the engine, each rebuilt from checked parts. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { once } from 'node:events'
import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'

import { answerJson, note, plainAnswer } from './answers.ts'
import { attachThrough } from './attach.ts'
import type { Audit } from './audit.ts'
import type { Engine } from './engine.ts'
import type { Operations } from './operations.ts'
import { forbidden, Refusal } from './refusal.ts'
import { type Operation, routeOf } from './routes.ts'

/** A create body has some 15 KiB, most of it the seccomp profile. */
const MOST_BODY: Partial<Record<Operation, number>> = { create: 256 * 1024, 'volume-create': 16 * 1024 }
const MOST_OTHER_BODY = 1024
/** Read and discarded, so that a client that sends too much still receives the refusal. */
const SWALLOWED = 1024 * 1024
/** Without a time limit, and counted with the attached streams. */
const LONG: readonly Operation[] = ['wait', 'events']

interface GateOptions {
  engine: Engine
  operations: Operations
  audit: Audit
  /** Attached streams, waits and event streams at once. */
  mostStreams: number
  /** Requests at once, with those still arriving or waiting for the engine. Default 1,024. */
  mostRequests?: number
}

/** An engine's stream may be silent for hours; only the request itself must arrive in time. */
const SERVER_LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 0,
  maxHeaderSize: 16 * 1024,
} as const

export function createGate({
  engine,
  operations,
  audit,
  mostStreams,
  mostRequests = 1_024,
}: GateOptions): Server {
  const inHand = { requests: 0, streams: 0 }
  const most = { requests: mostRequests, streams: mostStreams }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const disconnected = new AbortController()
    response.once('close', () => disconnected.abort())
    try {
      const route = routeOf(request.method ?? '', request.url ?? '')
      if (route.operation === 'attach') throw forbidden('attach is an upgrade, or nothing')
      const kind = LONG.includes(route.operation) ? 'streams' : 'requests'
      if (inHand[kind] >= most[kind]) throw busy()
      inHand[kind] += 1
      try {
        const body = await readBody(request, MOST_BODY[route.operation] ?? MOST_OTHER_BODY)
        await operations.run({ route, body, response, signal: disconnected.signal })
      } finally {
        inHand[kind] -= 1
      }
    } catch (error) {
      // A disconnected client needs no answer; its engine request was aborted.
      if (!disconnected.signal.aborted) refuse(audit, request, response, error)
    }
  }

  const server = createServer(SERVER_LIMITS, (request, response) => void handle(request, response))
  // Heads and idle connections cost as well, and more than the limits are useless.
  server.maxConnections = mostRequests + mostStreams
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (inHand.streams >= most.streams) {
      socket.on('error', () => {}) // it is being closed anyway
      const { status, message } = note(audit, request, busy())
      return void socket.end(plainAnswer(status, message), () => socket.destroy())
    }
    inHand.streams += 1
    void attachThrough({ request, socket, head, engine, operations, audit }).finally(() => {
      inHand.streams -= 1
    })
  })
  server.on('clientError', (error: Error & { code?: string }, socket) =>
    refuseMalformed(audit, error, socket),
  )
  return server
}

function refuse(audit: Audit, request: IncomingMessage, response: ServerResponse, error: unknown): void {
  const { status, message } = note(audit, request, error)
  if (response.headersSent) return void response.destroy()
  // An unread body would be parsed as the next request.
  if (!request.complete) response.setHeader('Connection', 'close')
  answerJson(response, status, JSON.stringify({ message }))
}

function refuseMalformed(audit: Audit, error: Error & { code?: string }, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  audit.warn({ status: 400, reason: error.code ?? error.message }, 'refused')
  const answer = plainAnswer(
    400,
    `engine-gate: not an HTTP request that it takes (${error.code ?? 'malformed'})`,
  )
  // A client that stays would keep the slot of a request whose body never ends.
  socket.end(answer, () => socket.destroy())
}

function busy(): Refusal {
  return new Refusal(503, 'engine-gate: too many requests at once; try again')
}

/** The whole body as text. @throws Refusal 413, and 400 for bytes that are not UTF-8. */
async function readBody(request: IncomingMessage, most: number): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes <= most) chunks.push(chunk)
    // Leaving the loop closes the connection of a client that is still writing.
    else if (bytes > most + SWALLOWED) break
  }
  if (bytes > most) throw new Refusal(413, `engine-gate: the body is larger than ${most} bytes`)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks))
  } catch (error) {
    throw new Refusal(400, 'engine-gate: the body is not UTF-8', { cause: error })
  }
}

/**
 * Listens on a Unix socket for its owner and its group. Replaces one without a listener, left by a
 * killed gate. Rejects when another gate answers.
 */
export async function listenOn(server: Server, path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 })
  if (await answers(path)) throw new Error(`Another gate listens on ${path}.`)
  rmSync(path, { force: true })
  // The group may connect from the first moment on, others never.
  const before = process.umask(0o117)
  try {
    server.listen(path)
    await once(server, 'listening')
  } finally {
    process.umask(before)
  }
  chmodSync(path, 0o660)
}

export function answers(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect(path)
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  return promise.finally(() => socket.destroy())
}
