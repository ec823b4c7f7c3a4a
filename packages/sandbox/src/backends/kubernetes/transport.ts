/** Requests to an API server: identity, time limits, and failures in words. */
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'

import { type ClientOptions, WebSocket } from 'ws'

import type { BackendHealth } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import { CircuitBreaker } from '../circuit-breaker.ts'
import type { ClusterAccess } from './access.ts'
import { answerError, connectionError, KubernetesError, lateError } from './api-error.ts'

/** Time limits in milliseconds, of a call with all of its waits. */
const DEADLINE = { ping: 5_000, read: 10_000, change: 30_000, connect: 10_000 } as const
/** A silent server is asked again after this, and after up to eight times this. */
const RETRY_MS = 250
/** An object is at most 1.5 MiB in the cluster's store. */
const MOST_ANSWER_BYTES = 64 * 1024 * 1024
const MOST_LINE_CHARS = 8 * 1024 * 1024
/** A kubelet sends at most 32 KiB in one message of a stream. */
const MOST_MESSAGE_BYTES = 1024 * 1024
/** An idle connection may have gone silent without a close. */
const IDLE_MS = 15_000

interface Request {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  query?: Record<string, string | undefined>
  /** Operations of a JSON patch, if it is a `PATCH`. */
  body?: unknown
  /** Completes “could not …”, for example `create the Pod sbx-1`. */
  doing: string
}

/** Contacts nothing before the first request. Every method rejects with a `SandboxError`. */
export class Transport {
  readonly #access: ClusterAccess
  readonly #agent: https.Agent
  readonly #breaker: CircuitBreaker

  constructor(access: ClusterAccess) {
    this.#access = access
    this.#agent = new https.Agent({ ...access.tls, keepAlive: true, timeout: IDLE_MS })
    const version: Request = { method: 'GET', path: '/version', doing: 'answer' }
    const ping = async (signal: AbortSignal) => textOf(await this.#send(version, false, signal))
    this.#breaker = new CircuitBreaker(`the API server at ${access.server.host}`, ping, { retryMs: RETRY_MS })
  }

  /** The JSON of an answer. An overloaded server is waited for within the deadline. */
  call(request: Request, signal?: AbortSignal): Promise<unknown> {
    const ms = request.method === 'GET' ? DEADLINE.read : DEADLINE.change
    return this.#breaker.run(
      (inner) =>
        this.#within(request.doing, ms, inner, async (deadline, either) => {
          const answer = await this.#answered(request, deadline, either)
          return parseJson(await textOf(answer), answer.statusCode ?? 0, request.doing)
        }),
      signal,
    )
  }

  /** The JSON of each line of an answer; rejects when nothing comes for `silentMs`. */
  async *lines(request: Request, silentMs: number, signal: AbortSignal): AsyncGenerator<unknown, void> {
    const answer = await this.#within(request.doing, DEADLINE.connect, signal, (deadline, either) =>
      this.#answered(request, deadline, either),
    )
    answer.setEncoding('utf8')
    const silence = setTimeout(() => answer.destroy(new Error('nothing came for too long')), silentMs)
    try {
      let rest = ''
      for await (const piece of answer as AsyncIterable<string>) {
        silence.refresh()
        const lines = (rest + piece).split('\n')
        rest = lines.pop() ?? ''
        if (rest.length > MOST_LINE_CHARS) throw new Error('a line of the answer is too long')
        for (const line of lines) yield parseJson(line, answer.statusCode ?? 0, request.doing)
      }
    } catch (error) {
      throw this.#inWords(error, request.doing, signal)
    } finally {
      clearTimeout(silence)
      answer.destroy()
    }
  }

  /** An open WebSocket, paused: a message may be there before its listeners are. */
  connect(path: string, protocol: string, doing: string, signal?: AbortSignal): Promise<WebSocket> {
    return this.#within(doing, DEADLINE.connect, signal, async (_, either) => {
      const open = async (refused: boolean): Promise<WebSocket> => {
        const authorization = await this.#access.authorization(refused)
        const headers = authorization === undefined ? undefined : { authorization }
        const options = { ...this.#access.tls, ...(headers && { headers }) }
        return openSocket(this.#url(path), protocol, options, doing, either)
      }
      try {
        return await open(false)
      } catch (error) {
        if (error instanceof KubernetesError && error.status === 401) return open(true)
        throw error
      }
    })
  }

  health(): BackendHealth {
    return this.#breaker.health()
  }

  close(): void {
    this.#agent.destroy()
  }

  /** The server's own path is a prefix of all. */
  #url(path: string, query: Record<string, string | undefined> = {}): URL {
    const { server } = this.#access
    const url = new URL(server.pathname.replace(/\/$/, '') + path, server)
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, value)
    return url
  }

  async #send(request: Request, refused: boolean, signal: AbortSignal): Promise<IncomingMessage> {
    const authorization = await this.#access.authorization(refused)
    const body = request.body === undefined ? undefined : JSON.stringify(request.body)
    const type = request.method === 'PATCH' ? 'application/json-patch+json' : 'application/json'
    const headers = {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': type, 'content-length': Buffer.byteLength(body) }),
    }
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const { method } = request
    const url = this.#url(request.path, request.query)
    const sent = https.request(url, { agent: this.#agent, method, headers, signal }, resolve)
    if (authorization !== undefined) sent.setHeader('authorization', authorization)
    sent.on('error', reject)
    sent.end(body)
    return promise
  }

  /** An answer with status 2xx, whose body is unread. */
  async #answered(request: Request, deadline: number, signal: AbortSignal): Promise<IncomingMessage> {
    let refused = false
    for (;;) {
      const answer = await this.#send(request, refused, signal)
      const status = answer.statusCode ?? 0
      if (status >= 200 && status < 300) return answer
      const error = answerError(status, await textOf(answer), request.doing)
      const wait = waitBefore(status, answer.headers['retry-after'])
      if (status === 401 && !refused) refused = true
      else if (wait !== undefined && performance.now() + wait < deadline)
        await sleep(wait, undefined, { signal })
      else throw error
    }
  }

  async #within<T>(
    doing: string,
    ms: number,
    signal: AbortSignal | undefined,
    run: (deadline: number, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    // Cleared, unlike AbortSignal.timeout: an answer that is still read must not end with it.
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), ms)
    try {
      return await run(performance.now() + ms, signal ? AbortSignal.any([signal, late.signal]) : late.signal)
    } catch (error) {
      if (late.signal.aborted && !signal?.aborted && !(error instanceof SandboxError))
        throw lateError(this.#access.server, doing, ms)
      throw this.#inWords(error, doing, signal)
    } finally {
      clearTimeout(timer)
    }
  }

  #inWords(error: unknown, doing: string, signal: AbortSignal | undefined): SandboxError {
    if (error instanceof SandboxError) return error
    return signal?.aborted
      ? new SandboxError('cancelled', `Stopped waiting for the cluster to ${doing}.`, { cause: error })
      : connectionError(error, this.#access.server, doing)
  }
}

/** Milliseconds to wait before the same request is sent again; undefined where that is no use. */
function waitBefore(status: number, retryAfter: string | undefined): number | undefined {
  if (status !== 429 && !(status === 503 && retryAfter !== undefined)) return undefined
  const seconds = Number(retryAfter)
  return (seconds > 0 ? seconds : 1) * 1_000 * (1 + Math.random() / 2)
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of answer as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > MOST_ANSWER_BYTES) throw new Error('the answer is too large')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}

function parseJson(text: string, status: number, doing: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) throw answerError(status, text, doing)
    throw error
  }
}

function openSocket(
  url: URL,
  protocol: string,
  options: ClientOptions,
  doing: string,
  signal: AbortSignal,
): Promise<WebSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<WebSocket>()
  const socket = new WebSocket(url, [protocol], {
    ...options,
    perMessageDeflate: false,
    maxPayload: MOST_MESSAGE_BYTES,
    skipUTF8Validation: true,
  })
  const stop = (): void => socket.terminate()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  socket.once('open', () => {
    socket.pause()
    resolve(socket)
  })
  // Stays: an error without a listener would end the process.
  socket.on('error', reject)
  socket.once('unexpected-response', (request, answer) => {
    void textOf(answer)
      .then((text) => reject(answerError(answer.statusCode ?? 0, text, doing)), reject)
      .finally(() => request.destroy())
  })
  return promise.finally(() => signal.removeEventListener('abort', stop))
}
