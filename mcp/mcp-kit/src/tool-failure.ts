/** Failure of a lookup: a code for programs, and a message with the next step. */

/**
 * `needs_auth`: no credential, or a rejected one. `refused`: the API rejects the request.
 * `unavailable`: no connection, or an error of the API. `bad_answer`: an unexpected format.
 */
type FailureCode =
  | 'invalid_arguments'
  | 'needs_auth'
  | 'forbidden'
  | 'not_found'
  | 'refused'
  | 'rate_limited'
  | 'timeout'
  | 'cancelled'
  | 'unavailable'
  | 'bad_answer'

export class ToolFailure extends Error {
  override readonly name = 'ToolFailure'
  readonly code: FailureCode
  /** Seconds until a retry may succeed, if the API says so. */
  readonly retryAfterSeconds: number | undefined

  /** `message` is shown to the model and to users, so it must not have credentials. */
  constructor(
    code: FailureCode,
    message: string,
    options: { retryAfterSeconds?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.code = code
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}
