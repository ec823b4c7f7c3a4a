import { backoffMs } from '#shared/async/backoff'
import type { BackendHealth } from '../backend.ts'
import { SandboxError } from '../errors.ts'
import { CallSlots } from './call-slots.ts'

export interface CircuitOptions {
  /** A call slower than this makes the breaker ping the engine. Default 2,000. */
  askAfterMs?: number
  /** Milliseconds that the engine may take to answer the ping. Default 5,000. */
  answerMs?: number
  /**
   * The first wait before a silent engine is pinged again, doubled up to 8 times. Default 1,000.
   */
  retryMs?: number
  /** Calls at once; the others are queued. Default 64. */
  atOnce?: number
  /** Queued calls; further ones are refused at once. Default 1,024. */
  inLine?: number
}

/** Give up waiting for a ping for this long, in retries: 1, 2, 4, 8 × `retryMs`. */
const MOST_RETRIES_WAIT = 8

/**
 * Keeps a hanging engine from blocking all callers. A slow call makes it ping the engine; when the
 * ping is not answered, every running, queued and new call fails at once until a later ping is
 * answered. A slow call on an engine that answers is left alone. Calls at once are bounded, and so
 * is the queue. `engine` is its name in messages, for example `the Docker engine at /x`; `ping`
 * rejects when its signal aborts.
 */
export class CircuitBreaker {
  readonly #engine: string
  readonly #ping: (signal: AbortSignal) => Promise<unknown>
  readonly #askAfterMs: number
  readonly #answerMs: number
  readonly #retryMs: number
  readonly #slots: CallSlots
  readonly #running = new Set<AbortController>()
  #broken: { since: number; at: number; asking: boolean } | undefined
  #watch: NodeJS.Timeout | undefined

  constructor(
    engine: string,
    ping: (signal: AbortSignal) => Promise<unknown>,
    {
      askAfterMs = 2_000,
      answerMs = 5_000,
      retryMs = 1_000,
      atOnce = 64,
      inLine = 1_024,
    }: CircuitOptions = {},
  ) {
    this.#engine = engine
    this.#ping = ping
    this.#askAfterMs = askAfterMs
    this.#answerMs = answerMs
    this.#retryMs = retryMs
    this.#slots = new CallSlots(atOnce, inLine, engine)
  }

  /** Rejects at once with `engine_unavailable` while the engine is silent or the queue is full. */
  async run<T>(work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#broken) throw this.#unavailable()
    await this.#slots.acquire(signal)
    const call = new AbortController()
    this.#running.add(call)
    this.#watchWhileRunning()
    try {
      const both = signal ? AbortSignal.any([signal, call.signal]) : call.signal
      return await work(both)
    } catch (error) {
      if (call.signal.aborted) throw call.signal.reason
      throw error
    } finally {
      this.#running.delete(call)
      this.#slots.release()
    }
  }

  health(): BackendHealth {
    const broken = this.#broken
    if (!broken) return { state: 'closed', running: this.#slots.taken, inLine: this.#slots.queued }
    return { state: broken.asking ? 'half-open' : 'open', since: broken.since, reason: this.#reason() }
  }

  #unavailable(): SandboxError {
    return new SandboxError(
      'engine_unavailable',
      `${this.#reason()} It is retried automatically; try again later.`,
    )
  }

  #reason(): string {
    const seconds = this.#broken ? Math.round((performance.now() - this.#broken.at) / 1_000) : 0
    return `${this.#engine.replace('the', 'The')} does not answer (since ${seconds} s).`
  }

  /** True for a refusal as well: it is an answer, and the caller receives it. */
  async #answersPing(): Promise<boolean> {
    const started = performance.now()
    const signal = AbortSignal.timeout(this.#answerMs)
    try {
      await this.#ping(signal)
      return true
    } catch (error) {
      // Connections on its socket are no longer accepted.
      if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return false
      if (!signal.aborted) return true
      // Much later than requested: this process stood still, and the answer may be unread.
      return performance.now() - started > this.#answerMs * 1.5 ? this.#answersPing() : false
    }
  }

  #watchWhileRunning(): void {
    if (this.#watch !== undefined || this.#broken || this.#running.size === 0) return
    const before = new Set(this.#running)
    this.#watch = setTimeout(() => void this.#check(before), this.#askAfterMs).unref()
  }

  async #check(before: ReadonlySet<AbortController>): Promise<void> {
    const slow = [...this.#running].some((call) => before.has(call))
    const hangs = slow && !(await this.#answersPing())
    this.#watch = undefined
    if (hangs && this.#running.size > 0) this.#open()
    else this.#watchWhileRunning()
  }

  #open(): void {
    this.#broken = { since: Date.now(), at: performance.now(), asking: false }
    const error = this.#unavailable()
    for (const call of this.#running) call.abort(error)
    this.#slots.failQueued(error)
    this.#askAgain(1)
  }

  #askAgain(silent: number): void {
    const longestMs = this.#retryMs * MOST_RETRIES_WAIT
    const waitMs = backoffMs(silent, { firstMs: this.#retryMs, longestMs })
    setTimeout(() => void this.#ask(silent), waitMs).unref()
  }

  /** `silent`: pings without an answer, with the one that opened the breaker. */
  async #ask(silent: number): Promise<void> {
    if (this.#broken) this.#broken.asking = true
    if (await this.#answersPing()) {
      this.#broken = undefined
      return
    }
    if (this.#broken) this.#broken.asking = false
    this.#askAgain(silent + 1)
  }
}
