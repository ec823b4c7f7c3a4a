/** Why a request never got an answer: the network's codes, in words that say what to do. */
import { existsSync } from 'node:fs'
import { messageOf } from '@sandlot/shared/errors'
import { modelError } from './errors.ts'
import type { ModelError } from './model.ts'

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

/** The typed error of a transport failure: `stream_interrupted` if the connection broke, `timeout`, else `unreachable`. */
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
