/**
 * The engine's side of the gate: requests that are made here from nothing, with headers of our own.
 */
import http, { type ClientRequest, type IncomingMessage } from 'node:http'
import https from 'node:https'
import { connect, isIP, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'

import type { EngineAddress } from '@sandlot/sandbox/backends/docker/connection'
import { Refusal } from './refusal.ts'

/**
 * Requests at once; the others wait their turn. The engine serves lists and inspects under locks
 * anyway.
 */
const AT_ONCE = 64
const ANSWER_MS = 120_000
const ATTACH_MS = 15_000
/** An inspect or a list of a few thousand containers, with room. */
const MOST_BYTES = 64 * 1024 * 1024

interface Asking {
  method: string
  /** With version and query, made by us. */
  path: string
  body?: unknown
  /** Ends the request with the client that wanted it. */
  signal: AbortSignal
}

export type Attached =
  /** `head`: what the engine sent right behind its answer. */
  { kind: 'open'; socket: Socket; head: Buffer } | { kind: 'refused'; answer: IncomingMessage }

export interface Engine {
  /**
   * The answer's body is not read yet. `long`: it may take as long as it likes (`wait`, `events`).
   */
  ask(asking: Asking & { long?: boolean }): Promise<IncomingMessage>
  /** A whole answer as JSON. */
  read(asking: Asking): Promise<{ status: number; json: unknown; text: string }>
  /** The raw stream of an attach, half-open allowed. */
  upgrade(asking: Asking): Promise<Attached>
  close(): void
}

export function createEngine(address: EngineAddress): Engine {
  const secure = address.kind === 'tcp' && address.tls !== undefined
  const agent = new (secure ? https : http).Agent({ keepAlive: true, maxSockets: AT_ONCE, maxFreeSockets: 8 })

  function send(
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
        : (secure ? https : http).request({
            ...common,
            host: address.host,
            port: address.port,
            // Else Node takes the name in our Host header for the one that the certificate must
            // have.
            servername: isIP(address.host) === 0 ? address.host : '',
            ...address.tls,
          })
    return request.end(content)
  }

  function answered<T>(
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

  const ask: Engine['ask'] = (asking) => {
    const request = send(asking, { agent: asking.long === true ? false : agent })
    return answered(request, asking.long === true ? 2 ** 31 - 1 : ANSWER_MS, (resolve) =>
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
      const options = {
        createConnection: () => halfOpen(address),
      }
      const request = send(asking, options, { Connection: 'Upgrade', Upgrade: 'tcp' })
      return answered<Attached>(request, ATTACH_MS, (resolve) => {
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

/** In an object of its own: the types of Node do not know that TLS sockets have it too. */
const HALF_OPEN = { allowHalfOpen: true }

/** A container that has closed its output may still read, and the other way round. */
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
