/**
 * Errors that cross a wire, in one table and one shape: `{code, message, requestId}`. Codes are
 * stable; messages are safe to show and say what to do where that is known. Without zod, which
 * would stay in the launcher's memory.
 */

/** Code → HTTP status. */
const ERROR_STATUS = {
  bad_request: 400,
  invalid_frame: 400,
  unknown_frame: 400,
  unauthenticated: 401,
  bad_origin: 403,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  busy: 409,
  /** A user's command that the agent would ask about in this mode. */
  approval_needed: 409,
  /** Another ai-agent owns this user: ask that one, or retry in a moment. */
  not_owner: 409,
  too_large: 413,
  rate_limited: 429,
  internal: 500,
  not_implemented: 501,
  agent_unavailable: 503,
  not_ready: 503,
  /** The user's chat storage is used up, or the server's disk is nearly full. */
  store_full: 507,
} as const satisfies Record<string, number>

export type ErrorCode = keyof typeof ERROR_STATUS
export const ERROR_CODES = Object.keys(ERROR_STATUS) as [ErrorCode, ...ErrorCode[]]

export interface ErrorBody {
  code: ErrorCode
  message: string
  requestId?: string | undefined
}

interface SandlotErrorOptions extends ErrorOptions {
  /** With `rate_limited`: retrying earlier is refused again. */
  retryAfterSeconds?: number
}

/**
 * An expected failure with a stable code. Any other exception is a bug and is sent as `internal`.
 */
export class SandlotError extends Error {
  override readonly name = 'SandlotError'
  readonly code: ErrorCode
  readonly retryAfterSeconds: number | undefined

  constructor(code: ErrorCode, message: string, options?: SandlotErrorOptions) {
    super(message, options)
    this.code = code
    this.retryAfterSeconds = options?.retryAfterSeconds
  }

  get status(): number {
    return ERROR_STATUS[this.code]
  }
}

/**
 * The response body for any exception. Only a `SandlotError` shows its message; `requestId`
 * identifies the log lines.
 */
export function toErrorBody(thrown: unknown, requestId?: string): ErrorBody {
  const known = thrown instanceof SandlotError
  return {
    code: known ? thrown.code : 'internal',
    message: known
      ? thrown.message
      : 'Something went wrong on our side. The log has the details under this request id.',
    requestId,
  }
}

/** True for an error with one of these codes, of the system or of a database. */
export function hasCode(thrown: unknown, ...codes: string[]): boolean {
  return thrown instanceof Error && 'code' in thrown && codes.includes(String(thrown.code))
}

/** The message of any exception, for logs and `cause` texts. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
