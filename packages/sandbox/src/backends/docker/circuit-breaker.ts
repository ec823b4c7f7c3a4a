import type { BackendHealth } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import type { EngineAddress } from './connection.ts'

export interface CircuitOptions {
  /**
   * A call that takes longer than this makes the breaker ask whether the engine lives at all.
   * Default 2,000.
   */
  askAfterMs?: number
  /** How long the engine may take for that, in milliseconds. Default 5,000. */
  answerMs?: number
  /**
   * The first wait before an engine that did not answer is asked again, doubled up to 8 times.
   * Default 1,000.
   */
  retryMs?: number
  /** Calls at once; the others wait in line. Default 64. */
  atOnce?: number
  /** Calls in line; more are refused at once. Default 1,024. */
  inLine?: number
}

interface CircuitBreaker {
  /**
   * Run one call. Rejects with `engine_unavailable`, at once, while the engine does not answer or
   * the line is full.
   */
  run<T>(work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T>
  health(): BackendHealth
}

/** Give up waiting for a ping for this long, in retries: 1, 2, 4, 8 × `retryMs`. */
const MOST_RETRIES_WAIT = 8

/**
 * Keeps a hanging engine from blocking all callers: while a call takes long, the engine is
 * asked for a ping; when that is not answered, every call under way and in line fails at once, and
 * so does each new one, until a later ping is answered. A call that only takes long, on an engine
 * that lives, is left alone. Calls at once are bounded, and so is the line. `ping` rejects when its
 * signal ends.
 */
export function createCircuitBreaker(
  address: EngineAddress,
  ping: (signal: AbortSignal) => Promise<unknown>,
  options: CircuitOptions = {},
): CircuitBreaker {
  const { askAfterMs = 2_000, answerMs = 5_000, retryMs = 1_000, atOnce = 64, inLine = 1_024 } = options
  const running = new Set<AbortController>()
  const line: { go: () => void; fail: (error: SandboxError) => void }[] = []
  let taken = 0
  let broken: { since: number; at: number; asking: boolean } | undefined
  let watch: NodeJS.Timeout | undefined

  function unavailable(): SandboxError {
    return new SandboxError('engine_unavailable', `${reason()} It is asked again by itself; try again later.`)
  }

  function reason(): string {
    const seconds = broken ? Math.round((performance.now() - broken.at) / 1_000) : 0
    return `The Docker engine at ${address.shown} does not answer (since ${seconds} s).`
  }

  /**
   * Whether the engine answers a ping in time. A refusal is an answer too: the caller receives it.
   */
  async function lives(): Promise<boolean> {
    const started = performance.now()
    const signal = AbortSignal.timeout(answerMs)
    try {
      await ping(signal)
      return true
    } catch (error) {
      // Connections on its socket are no longer accepted.
      if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return false
      if (!signal.aborted) return true
      // Much later than asked for: this process stood still, and the answer may lie unread.
      return performance.now() - started > answerMs * 1.5 ? lives() : false
    }
  }

  function watchWhileRunning(): void {
    if (watch !== undefined || broken || running.size === 0) return
    const before = new Set(running)
    watch = setTimeout(() => void look(before), askAfterMs).unref()
  }

  async function look(before: ReadonlySet<AbortController>): Promise<void> {
    const slow = [...running].some((call) => before.has(call))
    const hangs = slow && !(await lives())
    watch = undefined
    if (hangs && running.size > 0) open()
    else watchWhileRunning()
  }

  function open(): void {
    broken = { since: Date.now(), at: performance.now(), asking: false }
    const error = unavailable()
    for (const call of running) call.abort(error)
    for (const { fail } of line.splice(0)) fail(error)
    askAgain(retryMs)
  }

  function askAgain(waitMs: number): void {
    setTimeout(() => void ask(waitMs), waitMs).unref()
  }

  async function ask(waitMs: number): Promise<void> {
    if (broken) broken.asking = true
    if (await lives()) {
      broken = undefined
      return
    }
    if (broken) broken.asking = false
    askAgain(Math.min(waitMs * 2, retryMs * MOST_RETRIES_WAIT))
  }

  /** Resolves when this call may run; it then holds one of the places. */
  function room(signal: AbortSignal | undefined): Promise<void> {
    if (taken < atOnce) {
      taken += 1
      return Promise.resolve()
    }
    if (line.length >= inLine) {
      throw new SandboxError(
        'engine_unavailable',
        `${inLine} calls wait for the Docker engine at ${address.shown} already. Try again later.`,
      )
    }
    return new Promise((resolve, reject) => {
      const stopWaiting = (): void =>
        reject(new SandboxError('cancelled', 'Stopped waiting for the Docker engine.'))
      if (signal?.aborted) return stopWaiting()
      const leave = (): void => {
        line.splice(line.indexOf(waiting), 1)
        stopWaiting()
      }
      const stay = (): void => signal?.removeEventListener('abort', leave)
      const waiting = {
        go() {
          stay()
          resolve()
        },
        fail(error: SandboxError) {
          stay()
          reject(error)
        },
      }
      line.push(waiting)
      signal?.addEventListener('abort', leave)
    })
  }

  return {
    async run(work, signal) {
      if (broken) throw unavailable()
      await room(signal)
      const call = new AbortController()
      running.add(call)
      watchWhileRunning()
      try {
        const both = signal ? AbortSignal.any([signal, call.signal]) : call.signal
        return await work(both)
      } catch (error) {
        if (call.signal.aborted) throw call.signal.reason
        throw error
      } finally {
        running.delete(call)
        const next = line.shift()
        if (next) next.go()
        else taken -= 1
      }
    },
    health() {
      if (!broken) return { state: 'closed', running: taken, inLine: line.length }
      return { state: broken.asking ? 'half-open' : 'open', since: broken.since, reason: reason() }
    },
  }
}
