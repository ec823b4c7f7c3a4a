/**
 * Translates every error of a server into one failure of a call. Only this file knows the SDK's
 * errors.
 */
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
import { messageOf } from '@sandlot/shared/base/errors'
import { ToolError } from '../tools/tool-error.ts'

/** The error code of the agent's own response for a stream that ended without one. */
export const STREAM_ENDED = -32_099
const SHOWN_CHARS = 500
/** JSON-RPC codes with which servers refuse an `initialize` of an unknown revision. */
const REFUSALS: readonly number[] = [
  ProtocolErrorCode.MethodNotFound,
  ProtocolErrorCode.InvalidRequest,
  ProtocolErrorCode.InvalidParams,
  ProtocolErrorCode.UnsupportedProtocolVersion,
]

/** The server cannot be used now. `message` is the reason, for users and for the model. */
export class ServerUnavailableError extends Error {
  override readonly name = 'ServerUnavailable'
}

/** The user's next step. `wanted`: the scopes that are missing although they have signed in. */
export interface RequiredSignIn {
  url?: string | undefined
  /** Instructions when there is no link. */
  how?: string | undefined
  wanted?: string | undefined
}

/** The link, if it is a web address: the server chose it. */
export function signInLink({ url }: RequiredSignIn): string | undefined {
  return url !== undefined && /^https?:\/\//.test(url) ? url : undefined
}

/** The user has to sign in, or to allow more scopes. */
export class SignInRequiredError extends Error {
  override readonly name = 'NeedsAuth'
  readonly signIn: RequiredSignIn
  constructor(message: string, { cause, ...signIn }: RequiredSignIn & ErrorOptions = {}) {
    super(message, { cause })
    this.signIn = signIn
  }
}

/** A request was refused because the token's scopes do not suffice. */
export interface Challenge {
  /** The scopes that the server names. */
  scope?: string | undefined
  resourceMetadataUrl?: URL | undefined
}

/** The challenge of an error for insufficient scopes; undefined for any other error. */
export function challengeOf(error: unknown): Challenge | undefined {
  if (!(error instanceof InsufficientScopeError)) return undefined
  return { scope: error.requiredScope, resourceMetadataUrl: error.resourceMetadataUrl }
}

/** Words of servers that do not know a session, in the body of a refused request. */
const NO_SESSION = /\bsession|not initiali[sz]ed/i
/** The same as a whole message: a tool may fail for a session of its own. */
const ONLY_NO_SESSION =
  /^(bad request: )?(session (id )?(not found|unknown|expired|invalid)|(no valid|invalid|missing|unknown|expired) session( id)?( provided)?|server not initiali[sz]ed)\.?$/i

/**
 * The server does not know the session any more, so the request was not executed; begin a new
 * session. The protocol says 404; many servers say something else.
 */
export function isForgottenSession(error: unknown): boolean {
  if (error instanceof ProtocolError) return ONLY_NO_SESSION.test(error.message)
  if (!(error instanceof SdkHttpError)) return false
  const { status, message } = error
  return status === 404 || ((status === 400 || status === 410 || status === 422) && NO_SESSION.test(message))
}

/** The server refused the handshake: it may support another revision of the protocol. */
export function refusesRevision(error: unknown): boolean {
  if (error instanceof ProtocolError) return REFUSALS.includes(error.code)
  return error instanceof Error && /protocol version|version negotiation/i.test(error.message)
}

export function isUnauthorized(error: unknown): boolean {
  return error instanceof UnauthorizedError || (error instanceof SdkHttpError && error.status === 401)
}

function isTimeout(error: unknown): boolean {
  return error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout
}

/** The connection has ended, or there is none: the next call needs a new one. */
function isLost(error: unknown): boolean {
  return (
    (error instanceof SdkError &&
      (error.code === SdkErrorCode.ConnectionClosed || error.code === SdkErrorCode.NotConnected)) ||
    (error instanceof Error && error.message === 'Not connected')
  )
}

/** The message of an error, short and on one line, for the log and for users. */
export function reasonOf(error: unknown): string {
  const text = error instanceof SdkHttpError ? httpReason(error) : fetchReason(error)
  return text.replaceAll(/\s+/g, ' ').slice(0, SHOWN_CHARS)
}

function httpReason(error: SdkHttpError): string {
  const { status } = error
  return `it answered ${status ?? 'with an error'}: ${error.message.replace(/^Error POSTing to endpoint: /, '')}`
}

/** The message `fetch failed` has no information; its cause has, whatever wraps it. */
function fetchReason(error: unknown): string {
  const wrapped = error instanceof SdkError ? error.cause : undefined
  if (wrapped instanceof TypeError && wrapped.cause instanceof Error) return fetchReason(wrapped)
  if (error instanceof TypeError && error.cause instanceof Error)
    return `it cannot be reached (${error.cause.message === '' ? error.cause.name : error.cause.message})`
  return messageOf(error)
}

/**
 * The failure of a call. `sent`: the request may have reached the server. `lost`: why the
 * connection ended.
 */
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
  if (error instanceof SignInRequiredError) return new NeedsAuthFailure(server, error.signIn, because)
  if (isUnauthorized(error)) return new NeedsAuthFailure(server, {}, because)
  if (error instanceof ServerUnavailableError)
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

/** Carries the link next to the message: the user sees it, the model does not. */
export class NeedsAuthFailure extends ToolError {
  readonly server: string
  readonly signIn: RequiredSignIn
  constructor(server: string, signIn: RequiredSignIn, options: ErrorOptions) {
    const { url, wanted, how: inWords = 'They can do that where its access is set up.' } = signIn
    const what = wanted === undefined ? `connect ${server} first` : `allow ${server} more first: ${wanted}`
    const how = url === undefined ? inWords : 'A link to do so is shown to them with this call.'
    super('needs_auth', `The user has to ${what}. ${how} Say so, and try again once they have.`, options)
    this.server = server
    this.signIn = signIn
  }
}
