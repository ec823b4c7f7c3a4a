/** The request to a provider: one POST, and the raw answer, or why there is none. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { SetIn } from '@sandlot/shared/chat/reasons'
import { messageOf } from '@sandlot/shared/base/errors'
import { stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import {
  type ErrorContext,
  addressIn,
  modelError,
  settingError,
  toModelError,
  withoutAddresses,
  withRequestId,
} from './errors.ts'
import { failureOfResponse } from './failure.ts'
import { type ReadBody, httpPost } from './http-post.ts'
import type { JsonObject } from './json.ts'
import { ModelError } from './model.ts'

interface TransportOptions {
  baseUrl: URL
  /** Below `baseUrl`, for example `/chat/completions`. */
  path: string
  apiKey: string
  inContainer: boolean
  context: ErrorContext
}

export interface Posted {
  read: ReadBody
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

/** The statuses of success that have no body. */
const WITHOUT_BODY = new Set([204, 205])

/**
 * Returns `post`, which sends a body with the headers of its wire, which carry the key where there
 * is one, and resolves with the answer when its head is there, within
 * `headTimeoutMs` milliseconds. `connection` closes it. Rejects with `ModelError`; when
 * `connection` aborts, with whatever the transport makes of that.
 */
export function createTransport(
  options: TransportOptions,
): (
  body: JsonObject,
  ofWire: Record<string, string>,
  headTimeoutMs: number,
  connection: AbortController,
) => Promise<Posted> {
  const { baseUrl, apiKey, context } = options
  const url = new URL(shownUrl(baseUrl) + options.path)
  // Azure wants its `?api-version=` on every request.
  url.search = baseUrl.search

  return async function post(body, ofWire, headTimeoutMs, connection) {
    if (/[^\u0021-\u007e]/.test(apiKey)) {
      throw settingError('auth', {
        fact: 'The model’s API key has a space, line end or other character that no key has.',
        advice:
          context.setIn === 'page' ? 'Enter it again under Settings → Models.' : 'Set OPENAI_API_KEY again.',
        setIn: context.setIn,
      })
    }
    // Encoded here, so that the digest is of the bytes that go out.
    const text = stringifyExactly(body) ?? ''
    const headers = {
      accept: 'application/json',
      'content-type': 'application/json',
      ...requestHeaders(baseUrl, apiKey, ofWire),
    }
    const silence = `The model provider sent nothing for ${Math.round(headTimeoutMs / 1_000)} s.`
    const late = (): void => connection.abort(modelError('timeout', silence))
    const timer = setTimeout(late, headTimeoutMs)
    try {
      const { status, headers: received, read } = await httpPost(url, headers, text, connection.signal)
      const requestId = requestIdIn(received)
      if (status >= 300) {
        const failure = failureOfResponse(status, received, await startOf(read))
        throw withRequestId(toModelError(failure, context), requestId)
      }
      if (WITHOUT_BODY.has(status))
        throw modelError('protocol', 'The model provider sent an answer without a body.')
      return { read, requestId, requestDigest: createHash('sha256').update(text).digest('hex') }
    } catch (error) {
      throw error instanceof ModelError
        ? error
        : transportError(error, baseUrl, options.inContainer, context.setIn)
    } finally {
      clearTimeout(timer)
    }
  }
}

/**
 * Headers of every request. `ofWire` carries the key, where there is one; of
 * `http://user:password@host` the password goes into the header where no key does.
 */
export function requestHeaders(
  { username, password }: URL,
  apiKey: string,
  ofWire: Record<string, string>,
): Record<string, string> {
  const ours = { 'user-agent': 'Sandlot', ...ofWire }
  if (apiKey !== '' || (username === '' && password === '')) return ours
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { ...ours, authorization: `Basic ${Buffer.from(pair).toString('base64')}` }
}

/** Throws why the connection broke off before the end. */
async function startOf(read: ReadBody): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  const broken = await read((piece) => {
    pieces.push(piece)
    length += piece.length
    return length >= MAX_ERROR_BYTES
  })
  if (broken !== undefined) throw broken
  return Buffer.concat(pieces).toString('utf8')
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
const BROKEN = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

/** True when this process runs in a container, where localhost is the container. */
export function insideContainer(): boolean {
  return existsSync('/.dockerenv') || existsSync('/run/.containerenv')
}

/**
 * The typed error of a transport failure: `stream_interrupted` if the connection broke, else
 * `unreachable`.
 */
export function transportError(
  thrown: unknown,
  baseUrl: URL,
  inContainer: boolean,
  setIn?: SetIn,
): ModelError {
  const code = codeOf(thrown)
  if (BROKEN.has(code)) {
    return modelError(
      'stream_interrupted',
      `The connection to the model provider broke off (${code}).`,
      thrown,
    )
  }
  // The runtime has no words for some, such as a proxy that wants a password.
  const why = WORDS[code] ?? (code || rootMessage(thrown) || 'the connection failed')
  const shown = shownUrl(baseUrl)
  const fact = `Couldn’t reach the model provider: ${withoutAddresses(why, shown)}.`
  const about = `The provider is at ${shown}.${advice(baseUrl, inContainer, setIn)}`
  return settingError('unreachable', { fact, advice: about, setIn }, thrown)
}

/** The URL without a password. */
export function shownUrl(url: URL): string {
  return `${url.origin}${url.pathname.replace(/\/$/, '')}`
}

function advice(url: URL, inContainer: boolean, setIn: SetIn | undefined): string {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const loopback = host === 'localhost' || host === '::1' || host === '0.0.0.0' || host.startsWith('127.')
  if (loopback && inContainer) {
    const instead = new URL(url)
    instead.hostname = 'host.docker.internal'
    return ` Sandlot runs in a container, where ${host} is the container itself: set ${addressIn(setIn)} to ${shownUrl(instead)}, and let the model server listen on more than 127.0.0.1.`
  }
  return loopback ? ' Is the model server running?' : ` Check ${addressIn(setIn)} and the network.`
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
