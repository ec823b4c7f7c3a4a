/** A refused request. The message goes to the client and to the log, so it says what to do. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: 400 | 403 | 404 | 413 | 502 | 503 | 504

  constructor(status: Refusal['status'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.status = status
  }
}

export function forbidden(message: string): Refusal {
  return new Refusal(403, `engine-gate: ${message}`)
}
