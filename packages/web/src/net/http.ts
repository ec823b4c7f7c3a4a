/**
 * The service's HTTP API as functions. Every failure is an `ApiError` with a sentence that can be
 * shown.
 */
import { type SessionList, sessionList } from '@sandlot/shared/chat/chat-api'
import {
  errorBody,
  type ApiKey,
  keyList,
  me,
  type Me,
  newApiKey,
  type newKeyRequest,
  type NewPasswordRequest,
  setupState,
  type SetupRequest,
} from '@sandlot/shared/account/api'
import { messageOf, type ErrorCode } from '@sandlot/shared/base/errors'
import { type SessionSummary, sessionSummary } from '@sandlot/shared/chat/frames'
import { signedOut } from '@sandlot/shared/account/sign-in-api'
import { z } from 'zod'

/**
 * `network`: no answer at all. `unexpected`: an answer that is none of ours, as from a proxy in
 * between.
 */
type ApiErrorCode = ErrorCode | 'network' | 'unexpected'

export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ApiErrorCode
  /** Finds the details in the service's log. */
  readonly requestId: string | undefined
  /** The current state of a `conflict`, where the route reports it. */
  readonly current: unknown

  constructor(
    code: ApiErrorCode,
    message: string,
    requestId?: string,
    options?: ErrorOptions & { current?: unknown },
  ) {
    super(message, options)
    this.code = code
    this.requestId = requestId
    this.current = options?.current
  }
}

/** `body` goes as JSON. Throws `ApiError`. */
export function call<T>(schema: z.ZodType<T>, method: string, path: string, body?: unknown): Promise<T> {
  return send(
    schema,
    method,
    path,
    body === undefined ? undefined : { type: 'application/json', body: JSON.stringify(body) },
  )
}

/** The same with a body as it is. */
async function send<T>(
  schema: z.ZodType<T>,
  method: string,
  path: string,
  content?: { type: string; body: string | Blob },
): Promise<T> {
  let response: Response
  try {
    response = await fetch(path, {
      method,
      credentials: 'same-origin',
      // A deletion is sent also while the page closes.
      keepalive: method === 'DELETE',
      headers: {
        accept: 'application/json',
        ...(content === undefined ? {} : { 'content-type': content.type }),
      },
      ...(content === undefined ? {} : { body: content.body }),
    })
  } catch (error) {
    throw new ApiError('network', 'Sandlot cannot be reached. Check that it is running.', undefined, {
      cause: error,
    })
  }
  const json = await readJson(response)
  if (!response.ok) throw toApiError(response, json)
  const parsed = schema.safeParse(json)
  if (!parsed.success)
    throw new ApiError('unexpected', `The answer of ${path} was not understood: ${parsed.error.message}`)
  return parsed.data
}

/** The error of a response that is not ok. */
export async function problemOf(response: Response): Promise<ApiError> {
  return toApiError(response, await readJson(response))
}

async function readJson(response: Response): Promise<unknown> {
  const text = await response.text()
  if (text === '') return {}
  try {
    return JSON.parse(text)
  } catch (error) {
    return { unreadable: messageOf(error) }
  }
}

function toApiError(response: Response, json: unknown): ApiError {
  const parsed = errorBody.safeParse(json)
  if (parsed.success) {
    const { code, message, requestId } = parsed.data
    const current = z.object({ current: z.unknown() }).safeParse(json).data?.current
    return new ApiError(code, message, requestId, { current })
  }
  const code = response.status === 401 ? 'unauthenticated' : 'unexpected'
  return new ApiError(
    code,
    `The service answered ${response.status}. Something between it and this browser may be in the way.`,
  )
}

const nothing = z.unknown()

export function fetchMe(): Promise<Me> {
  return call(me, 'GET', '/api/me')
}

export async function fetchSetupNeeded(): Promise<boolean> {
  return (await call(setupState, 'GET', '/api/setup')).needed
}

export async function setUp(form: SetupRequest): Promise<void> {
  await call(nothing, 'POST', '/api/setup', form)
}

/** Answers where the provider's own sign-in is ended, where there is one. */
export async function signOut(): Promise<string | undefined> {
  return signedOut.safeParse(await call(nothing, 'POST', '/api/sign-out')).data?.url
}

export async function changeName(name: string): Promise<void> {
  await call(nothing, 'PUT', '/api/account/name', { name })
}

/** The other sign-ins of this person end. */
export async function changePassword(change: NewPasswordRequest): Promise<void> {
  await call(nothing, 'PUT', '/api/password', change)
}

/** A page of what is not archived, newest first; `before` is the `next` of the page before it. */
export function fetchSessions(before?: number): Promise<SessionList> {
  const page = before === undefined ? '' : `&before=${before}`
  return call(sessionList, 'GET', `/api/sessions?archived=false${page}`)
}

export function fetchSession(sessionId: string): Promise<SessionSummary> {
  return call(sessionSummary, 'GET', `/api/sessions/${encodeURIComponent(sessionId)}`)
}

/** The newest chats with this in their names, by pages as `fetchSessions`. */
export function findSessions(title: string, before?: number): Promise<SessionList> {
  const page = before === undefined ? '' : `&before=${before}`
  return call(sessionList, 'GET', `/api/sessions?title=${encodeURIComponent(title)}${page}`)
}

export async function renameSession(sessionId: string, title: string): Promise<void> {
  await call(nothing, 'PATCH', `/api/sessions/${encodeURIComponent(sessionId)}`, { title })
}

export async function deleteSession(sessionId: string): Promise<void> {
  await call(nothing, 'DELETE', `/api/sessions/${encodeURIComponent(sessionId)}`)
}

export async function fetchKeys(): Promise<ApiKey[]> {
  return (await call(keyList, 'GET', '/api/keys')).keys
}

/** The whole key; the service does not show it again. */
export async function createKey(wanted: z.infer<typeof newKeyRequest>): Promise<string> {
  return (await call(newApiKey, 'POST', '/api/keys', wanted)).key
}

export async function revokeKey(id: string): Promise<void> {
  await call(nothing, 'DELETE', `/api/keys/${encodeURIComponent(id)}`)
}
