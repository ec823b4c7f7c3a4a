/**
 * Why a lookup gave nothing: a code for programs, and a sentence that says what happened and what
 * to do.
 */

/**
 * `needs_auth`: no credential, or one that is refused. `refused`: the other side understood the
 * request and will not answer it. `unavailable`: not reachable, or its own fault. `bad_answer`:
 * what came is not what it documents.
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
  /** Seconds after which another try may succeed, where the other side said so. */
  readonly retryAfterSeconds: number | undefined

  /** `message` is shown to the model and to people: no credential, nothing that was not checked. */
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
