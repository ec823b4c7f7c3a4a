/**
 * The only file that imports the `openai` package: one POST, and the raw answer. Its retries, its
 * parsing and its logs are off.
 */
import { createHash } from 'node:crypto'
import OpenAI, { APIConnectionTimeoutError } from 'openai'
import { type ErrorContext, modelError, toModelError, withRequestId } from './errors.ts'
import { type ProviderFailure, failureOfResponse } from './failure.ts'
import type { JsonObject } from './json.ts'
import { existsSync } from 'node:fs'
import { messageOf } from '@sandlot/shared/base/errors'
import type { ModelError } from './model.ts'

interface TransportOptions {
  baseUrl: URL
  apiKey: string
  /** Milliseconds until the head of the answer must be there. */
  headTimeoutMs: number
  inContainer: boolean
  context: ErrorContext
}

export interface Posted {
  body: ReadableStream<Uint8Array>
  /** See `ModelError`. */
  requestId: string | undefined
  /** SHA-256 of the body that was sent. */
  requestDigest: string
}

/** Under which the providers name a request, their own first, then what stands before them. */
const REQUEST_ID_HEADERS = [
  'x-request-id',
  'request-id',
  'x-amzn-requestid',
  'apim-request-id',
  'x-ds-trace-id',
  'x-trace-id',
  'cf-ray',
]

/** It is shown and stored: what is no id is left out. */
function requestIdIn(headers: Headers): string | undefined {
  return REQUEST_ID_HEADERS.map((name) => headers.get(name) ?? '').find((id) =>
    /^[\w.:+/=-]{1,128}$/.test(id),
  )
}

/** Longest error body that we look at. */
const MAX_ERROR_BYTES = 64 * 1024

/**
 * Returns `post`, which sends a body to `/chat/completions` and resolves with the answer when its
 * head is there. Rejects with `ModelError`; when `signal` aborts, with whatever the transport makes
 * of that.
 */
export function createTransport(
  options: TransportOptions,
): (body: JsonObject, signal: AbortSignal) => Promise<Posted> {
  const { baseUrl, apiKey, headTimeoutMs, context } = options
  const client = new OpenAI({
    baseURL: shownUrl(baseUrl),
    // Azure wants its `?api-version=` on every request.
    defaultQuery: Object.fromEntries(baseUrl.searchParams),
    // Local servers need none, but the client insists; the header is taken out again.
    apiKey: apiKey === '' ? 'none' : apiKey,
    ...(apiKey === '' ? { defaultHeaders: { Authorization: basicAuthorization(baseUrl) } } : {}),
    organization: null,
    project: null,
    maxRetries: 0,
    timeout: headTimeoutMs,
    logLevel: 'off',
    fetch: fetchOrThrow,
  })

  return async function post(body, signal) {
    if (/[^\u0021-\u007e]/.test(apiKey)) {
      throw modelError(
        'auth',
        'OPENAI_API_KEY has a space, line end or other character that no key has. Set it again.',
      )
    }
    // Encoded here, so that the digest is of the bytes that go out.
    const text = JSON.stringify(body)
    const sent = { body: text, headers: { 'content-type': 'application/json' }, signal, stream: true }
    try {
      const response = await client.post('/chat/completions', sent).asResponse()
      if (response.body === null)
        throw modelError('protocol', 'The model provider sent an answer without a body.')
      const requestDigest = createHash('sha256').update(text).digest('hex')
      return { body: response.body, requestId: requestIdIn(response.headers), requestDigest }
    } catch (error) {
      const refused = findCause(error)
      if (refused !== undefined)
        throw withRequestId(toModelError(refused.failure, context), refused.requestId)
      if (error instanceof APIConnectionTimeoutError) {
        throw modelError(
          'timeout',
          `The model provider sent nothing for ${Math.round(headTimeoutMs / 1_000)} s.`,
          error,
        )
      }
      throw transportError(error, baseUrl, options.inContainer)
    }
  }
}

/**
 * `http://user:password@host`: fetch takes no such URL, so the password goes into the header where
 * no key does.
 */
function basicAuthorization({ username, password }: URL): string | null {
  if (username === '' && password === '') return null
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return `Basic ${Buffer.from(pair).toString('base64')}`
}

/**
 * An HTTP answer that is no success. Carried through the client, which would keep only part of the
 * body.
 */
class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly failure: ProviderFailure
  readonly requestId: string | undefined

  constructor(failure: ProviderFailure, requestId: string | undefined) {
    super(`status ${failure.status}`)
    this.failure = failure
    this.requestId = requestId
  }
}

async function fetchOrThrow(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, withoutLimits(init))
  if (response.ok) return response
  const { status, headers } = response
  throw new RefusedError(failureOfResponse(status, headers, await startOf(response)), requestIdIn(headers))
}

type Dispatch = (options: object, handler: unknown) => boolean

/** The sender of `fetch`'s requests, as far as we need it. */
interface Dispatcher {
  compose(wrap: (dispatch: Dispatch) => Dispatch): Dispatcher
}

/** The global symbol under which Node keeps its dispatcher. */
const OF_FETCH = Symbol.for('undici.globalDispatcher.1')

/**
 * By itself `fetch` gives up after five minutes without a head, or without bytes. Our limits may be
 * longer, and are kept by ourselves. All else stays as the process has it, such as a proxy from the
 * environment.
 */
function withoutLimits(init: RequestInit = {}): RequestInit {
  const ofFetch = Reflect.get(globalThis, OF_FETCH) as Partial<Dispatcher> | undefined
  // A dispatcher of an older undici cannot be wrapped, and keeps its limits.
  if (ofFetch?.compose === undefined) return init
  const dispatcher = ofFetch.compose(
    (dispatch) => (options, handler) => dispatch({ ...options, headersTimeout: 0, bodyTimeout: 0 }, handler),
  )
  // Not a spread: the standard's type has no such member.
  return Object.assign({}, init, { dispatcher })
}

async function startOf(response: Response): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of response.body ?? []) {
    pieces.push(piece)
    length += piece.length
    if (length >= MAX_ERROR_BYTES) break
  }
  return Buffer.concat(pieces).toString('utf8')
}

function findCause(thrown: unknown): RefusedError | undefined {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (error instanceof RefusedError) return error
  }
  return undefined
}

// ── Why a request got no answer ─────────────────────────────────────────────────────────────────

const WORDS: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the name is not known',
  EAI_AGAIN: 'the name could not be looked up',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ETIMEDOUT: 'it does not answer',
  UND_ERR_CONNECT_TIMEOUT: 'it does not answer',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is signed by an authority that is not trusted here',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate cannot be verified',
  CERT_HAS_EXPIRED: 'its certificate has expired',
}

/** Codes of a connection that was there and broke. */
const BROKEN = new Set([
  'ECONNRESET',
  'EPIPE',
  'UND_ERR_SOCKET',
  'UND_ERR_BODY_TIMEOUT',
  'ERR_STREAM_PREMATURE_CLOSE',
])

/** True when this process runs in a container, where localhost is the container. */
export function insideContainer(): boolean {
  return existsSync('/.dockerenv') || existsSync('/run/.containerenv')
}

/**
 * The typed error of a transport failure: `stream_interrupted` if the connection broke, `timeout`,
 * else `unreachable`.
 */
export function transportError(thrown: unknown, baseUrl: URL, inContainer: boolean): ModelError {
  const code = codeOf(thrown)
  // The runtime's own limit, where ours is longer.
  if (code === 'UND_ERR_HEADERS_TIMEOUT')
    return modelError('timeout', 'The model provider did not answer in time.', thrown)
  if (BROKEN.has(code)) {
    return modelError(
      'stream_interrupted',
      `The connection to the model provider broke off (${code}).`,
      thrown,
    )
  }
  // The runtime has no words for some, such as a proxy that wants a password.
  const why = WORDS[code] ?? (code || rootMessage(thrown) || 'the connection failed')
  return modelError(
    'unreachable',
    `Cannot reach the model at ${shownUrl(baseUrl)}: ${why}.${advice(baseUrl, inContainer)}`,
    thrown,
  )
}

/** The URL without a password. */
export function shownUrl(url: URL): string {
  return `${url.origin}${url.pathname.replace(/\/$/, '')}`
}

function advice(url: URL, inContainer: boolean): string {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const loopback = host === 'localhost' || host === '::1' || host === '0.0.0.0' || host.startsWith('127.')
  if (loopback && inContainer) {
    const instead = new URL(url)
    instead.hostname = 'host.docker.internal'
    return ` Sandlot runs in a container, where ${host} is the container itself: set OPENAI_BASE_URL=${shownUrl(instead)} and let the model server listen on more than 127.0.0.1.`
  }
  return loopback ? ' Is the model server running?' : ' Check OPENAI_BASE_URL and the network.'
}

/** The first system code in an error or its causes; of several addresses tried, the first one's. */
function codeOf(thrown: unknown): string {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 10; error = error.cause, depth++) {
    if ('code' in error && typeof error.code === 'string' && error.code !== '') return error.code
    if (error instanceof AggregateError) return codeOf(error.errors[0])
  }
  return ''
}

function rootMessage(thrown: unknown): string {
  let error = thrown
  for (let depth = 0; error instanceof Error && error.cause instanceof Error && depth < 10; depth++)
    error = error.cause
  return messageOf(error).replace(/\.$/, '')
}
