/** Client of the engine. It makes every request from scratch, with headers of its own. */
import http, { type ClientRequest, type IncomingMessage } from 'node:http'
import https from 'node:https'
import { connect, isIP, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'

import type { EngineAddress } from '@sandlot/sandbox/backends/docker/connection'
import { Refusal } from './refusal.ts'

/**
 * Requests at once; the others are queued. The engine serves lists and inspects under locks anyway.
 */
const AT_ONCE = 64
const ANSWER_MS = 120_000
const ATTACH_MS = 15_000
/** Enough for an inspect or a list of a few thousand containers. */
const MOST_BYTES = 64 * 1024 * 1024

interface Asking {
  method: string
  /** With version and query, built by the gate. */
  path: string
  body?: unknown
  /** Aborts the request when its client disconnects. */
  signal: AbortSignal
}

export type Attached =
  /** `head`: bytes that the engine sent directly after its answer. */
  { kind: 'open'; socket: Socket; head: Buffer } | { kind: 'refused'; answer: IncomingMessage }

export interface Engine {
  /** The answer's body is not read yet. `long`: no time limit (`wait`, `events`). */
  ask(asking: Asking & { long?: boolean }): Promise<IncomingMessage>
  /** A whole answer as JSON. */
  read(asking: Asking): Promise<{ status: number; json: unknown; text: string }>
  /** The raw stream of an attach, half-open allowed. */
  upgrade(asking: Asking): Promise<Attached>
  close(): void
}

export function createEngine(address: EngineAddress): Engine {
  const secure = isSecure(address)
  const agent = new (secure ? https : http).Agent({ keepAlive: true, maxSockets: AT_ONCE, maxFreeSockets: 8 })

  const ask: Engine['ask'] = (asking) => {
    const long = asking.long === true
    const request = send(address, asking, { agent: long ? false : agent })
    return answered(address, request, long ? 2 ** 31 - 1 : ANSWER_MS, (resolve) =>
      request.once('response', resolve),
    )
  }

  return {
    ask,
    async read(asking) {
      const answer = await ask(asking)
      const whole = await text(limited(answer))
      let json: unknown
      try {
        json = JSON.parse(whole)
      } catch {
        json = undefined // an empty or plain answer: the status says it
      }
      return { status: answer.statusCode ?? 502, json, text: whole }
    },
    upgrade(asking) {
      // Without any agent: with one, `false` too, Node makes the connection itself, and it is not
      // half-open.
      const options = { createConnection: () => halfOpen(address) }
      const request = send(address, asking, options, { Connection: 'Upgrade', Upgrade: 'tcp' })
      return answered<Attached>(address, request, ATTACH_MS, (resolve) => {
        request.once('upgrade', (_answer, socket: Socket, head: Buffer) => {
          // The signal ends the dialling; from here on the stream belongs to the splice.
          resolve({ kind: 'open', socket, head })
        })
        request.once('response', (answer) => resolve({ kind: 'refused', answer }))
      })
    },
    close: () => agent.destroy(),
  }
}

function isSecure(address: EngineAddress): boolean {
  return address.kind === 'tcp' && address.tls !== undefined
}

function send(
  address: EngineAddress,
  asking: Asking,
  options: http.RequestOptions,
  headers: Record<string, string> = {},
): ClientRequest {
  const content = asking.body === undefined ? '' : JSON.stringify(asking.body)
  const common: http.RequestOptions = {
    method: asking.method,
    path: asking.path,
    signal: asking.signal,
    ...options,
    headers: {
      Host: 'docker',
      'Content-Length': Buffer.byteLength(content),
      ...(content === '' ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
  }
  const request =
    address.kind === 'unix'
      ? http.request({ ...common, socketPath: address.socketPath })
      : (isSecure(address) ? https : http).request({
          ...common,
          host: address.host,
          port: address.port,
          // Otherwise Node expects the certificate to have the name of our Host header.
          servername: isIP(address.host) === 0 ? address.host : '',
          ...address.tls,
        })
  return request.end(content)
}

/** Settles `request` by what `listen` resolves with, by its error, or by the time limit. */
function answered<T>(
  address: EngineAddress,
  request: ClientRequest,
  ms: number,
  listen: (resolve: (value: T) => void) => void,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const timer = setTimeout(
    () => request.destroy(new Refusal(504, `The Docker engine did not answer within ${ms / 1000} s.`)),
    ms,
  )
  request.on('error', (error) => reject(error instanceof Refusal ? error : unreachable(address, error)))
  request.once('close', () => clearTimeout(timer))
  listen((value) => {
    clearTimeout(timer)
    resolve(value)
  })
  return promise
}

/** In an object of its own: Node's types do not know that TLS sockets have it too. */
const HALF_OPEN = { allowHalfOpen: true }

/** A container that has closed its output may still read, and vice versa. */
function halfOpen(address: EngineAddress): Socket {
  if (address.kind === 'unix') return connect({ path: address.socketPath, allowHalfOpen: true })
  const { host, port, tls } = address
  const socket =
    tls === undefined
      ? connect({ host, port, allowHalfOpen: true })
      : connectTls({ host, port, ...HALF_OPEN, ...tls })
  socket.setKeepAlive(true, 15_000)
  socket.setNoDelay(true)
  return socket
}

async function* limited(answer: IncomingMessage): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MOST_BYTES) throw new Refusal(502, 'The Docker engine answered more than can be checked.')
    yield chunk
  }
}

function unreachable(address: EngineAddress, cause: Error): Refusal {
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message
  return new Refusal(502, `The gate cannot reach the Docker engine at ${address.shown} (${code}).`, { cause })
}
