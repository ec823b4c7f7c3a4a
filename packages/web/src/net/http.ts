/** Errors of the service's HTTP API: each is an `ApiError` with a sentence that can be shown. */
import { errorBody } from '@sandlot/shared/account/api'
import { messageOf, type ErrorCode } from '@sandlot/shared/base/errors'
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

/** The current state, where `error` is a conflict that reports it. */
export function currentOf<T>(error: unknown, schema: z.ZodType<T>): T | undefined {
  return error instanceof ApiError ? schema.safeParse(error.current).data : undefined
}

/** The error of a response that is not ok. */
export async function problemOf(response: Response): Promise<ApiError> {
  return errorOf(response.status, jsonOf(await response.text()))
}

/** An object without fields for an empty body; undefined: not JSON, as from a proxy in between. */
export function jsonOf(text: string): unknown {
  if (text === '') return {}
  try {
    return JSON.parse(text)
  } catch (error) {
    console.warn(`An answer is not JSON: ${messageOf(error)}`)
    return undefined
  }
}

/** The error of an answer that is none, or one of another server. */
export function errorOf(status: number, json: unknown): ApiError {
  const parsed = errorBody.safeParse(json)
  if (parsed.success) {
    const { code, message, requestId } = parsed.data
    const current = z.object({ current: z.unknown() }).safeParse(json).data?.current
    return new ApiError(code, message, requestId, { current })
  }
  return new ApiError(
    status === 401 ? 'unauthenticated' : 'unexpected',
    `Unexpected response (${status}). A proxy may be in the way.`,
  )
}
