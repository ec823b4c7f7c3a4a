/** Everything that can go wrong between us and a server, as one failure of a call. The only file that knows the SDK's errors. */
import {
  InsufficientScopeError,
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnauthorizedError,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/client'
import { messageOf } from '@sandlot/shared/errors'
import { ToolError } from '../tools/tool-error.ts'

/** The error code of a response that the agent makes itself, for a stream that ended without one. */
export const STREAM_ENDED = -32_099
const SHOWN_CHARS = 500
/** JSON-RPC codes with which servers refuse an `initialize` that they do not know. */
const REFUSALS: readonly number[] = [
  ProtocolErrorCode.MethodNotFound,
  ProtocolErrorCode.InvalidRequest,
  ProtocolErrorCode.InvalidParams,
  ProtocolErrorCode.UnsupportedProtocolVersion,
]

/** The server cannot be used now. `message` says why, for a person and for the model. */
export class ServerUnavailable extends Error {
  override readonly name = 'ServerUnavailable'
}

/** What a person has to do: at `url`, or where access to the server is set up. `wanted`: they have signed in, and this is more. */
export interface Connecting {
  url?: string | undefined
  /** Where there is no link: what they can do. */
  how?: string | undefined
  wanted?: string | undefined
}

/** The address, where a person can be sent there: it is the server's word. */
export function linkTo({ url }: Connecting): string | undefined {
  return url !== undefined && /^https?:\/\//.test(url) ? url : undefined
}

/** The user has to sign in first, or to allow more. */
export class NeedsAuth extends Error {
  override readonly name = 'NeedsAuth'
  readonly connecting: Connecting
  constructor(message: string, { cause, ...connecting }: Connecting & ErrorOptions = {}) {
    super(message, { cause })
    this.connecting = connecting
  }
}

/** A request was understood and refused: the token is good for less than this needs. */
export interface Challenge {
  /** What the server says that it needs, in its words. */
  scope?: string | undefined
  resourceMetadataUrl?: URL | undefined
}

/** The token was understood and allows too little; undefined when it is not that. */
export function challengeOf(error: unknown): Challenge | undefined {
  if (!(error instanceof InsufficientScopeError)) return undefined
  return { scope: error.requiredScope, resourceMetadataUrl: error.resourceMetadataUrl }
}

/** The server has forgotten our session; a new one may be begun. What was asked was not done. */
export function isForgottenSession(error: unknown): boolean {
  return error instanceof SdkHttpError && error.status === 404
}

/** It answered the handshake with a no: it may speak another revision of the protocol. */
export function refusesRevision(error: unknown): boolean {
  if (error instanceof ProtocolError) return REFUSALS.includes(error.code)
  return error instanceof Error && /protocol version|version negotiation/i.test(error.message)
}

export function isUnauthorized(error: unknown): boolean {
  return error instanceof UnauthorizedError || (error instanceof SdkHttpError && error.status === 401)
}

export function isTimeout(error: unknown): boolean {
  return error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout
}

/** The connection is over, or there is none: the next call needs a new one. */
export function isLost(error: unknown): boolean {
  return (
    (error instanceof SdkError &&
      (error.code === SdkErrorCode.ConnectionClosed || error.code === SdkErrorCode.NotConnected)) ||
    (error instanceof Error && error.message === 'Not connected')
  )
}

/** In words, short, on one line: for the log and for people. */
export function reasonOf(error: unknown): string {
  const text = error instanceof SdkHttpError ? httpReason(error) : fetchReason(error)
  return text.replaceAll(/\s+/g, ' ').slice(0, SHOWN_CHARS)
}

function httpReason(error: SdkHttpError): string {
  const { status } = error
  return `it answered ${status ?? 'with an error'}: ${error.message.replace(/^Error POSTing to endpoint: /, '')}`
}

/** `fetch failed` says nothing, whatever is wrapped round it; its cause does. */
function fetchReason(error: unknown): string {
  const wrapped = error instanceof SdkError ? error.cause : undefined
  if (wrapped instanceof TypeError && wrapped.cause instanceof Error) return fetchReason(wrapped)
  if (error instanceof TypeError && error.cause instanceof Error)
    return `it cannot be reached (${error.cause.message === '' ? error.cause.name : error.cause.message})`
  return messageOf(error)
}

/** How a call of `tool` of `server` failed. `sent`: it may have reached the server. `lost`: why the connection ended, if it did. */
export function callFailureOf(
  error: unknown,
  { server, tool, sent, lost }: { server: string; tool: string; sent: boolean; lost: string | undefined },
): ToolError {
  const because = { cause: error }
  if (error instanceof ToolError) return error
  if (error instanceof UrlElicitationRequiredError) {
    const url = error.elicitations.find((one) => 'url' in one)?.url
    return new NeedsAuthFailure(server, { url }, because)
  }
  if (error instanceof NeedsAuth) return new NeedsAuthFailure(server, error.connecting, because)
  if (isUnauthorized(error)) return new NeedsAuthFailure(server, {}, because)
  if (error instanceof ServerUnavailable)
    return new ToolError('unavailable', `${server} cannot be used now: ${error.message}.`, {
      ...because,
      transient: true,
    })
  if (isTimeout(error))
    return new ToolError(
      'timeout',
      `${server} neither answered ${tool} nor reported progress in time.`,
      because,
    )
  if (error instanceof ProtocolError && error.code === STREAM_ENDED)
    return wentAway(server, tool, error.message, because)
  if (error instanceof ProtocolError) {
    const invalid: number = ProtocolErrorCode.InvalidParams
    const reason = error.code === invalid ? 'invalid_arguments' : 'tool_error'
    return new ToolError(reason, `${tool} failed: ${reasonOf(error)}`, because)
  }
  if (error instanceof SdkError && error.code === SdkErrorCode.InvalidResult)
    return new ToolError(
      'invalid_output',
      `${server} answered ${tool} with something that is no result.`,
      because,
    )
  if (error instanceof SdkHttpError && (error.status === 429 || error.status === 503))
    return new ToolError('unavailable', `${server} is busy: ${reasonOf(error)}`, {
      ...because,
      transient: true,
    })
  if (sent && (isLost(error) || lost !== undefined))
    return wentAway(server, tool, lost ?? 'the connection ended', because)
  return new ToolError('unavailable', `${server} cannot be used now: ${lost ?? reasonOf(error)}.`, {
    ...because,
    transient: true,
  })
}

function wentAway(server: string, tool: string, why: string, because: ErrorOptions): ToolError {
  const text = `${server} went away while it ran ${tool} (${why}). Whether the call had its effect is not known.`
  return new ToolError('interrupted', text, { ...because, transient: true })
}

/** Carries the address beside the words: it is for the person, not for the model. */
export class NeedsAuthFailure extends ToolError {
  readonly server: string
  readonly connecting: Connecting
  constructor(server: string, connecting: Connecting, options: ErrorOptions) {
    const { url, wanted, how: inWords = 'They can do that where its access is set up.' } = connecting
    const what = wanted === undefined ? `connect ${server} first` : `allow ${server} more first: ${wanted}`
    const how = url === undefined ? inWords : 'A link to do so is shown to them with this call.'
    super('needs_auth', `The user has to ${what}. ${how} Say so, and try again once they have.`, options)
    this.server = server
    this.connecting = connecting
  }
}
