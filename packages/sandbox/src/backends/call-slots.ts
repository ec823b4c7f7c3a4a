import { SandboxError } from '../errors.ts'

interface Waiting {
  go: () => void
  fail: (error: SandboxError) => void
}

/** Bounds the calls that run at once; further ones wait in a bounded queue. */
export class CallSlots {
  readonly #atOnce: number
  readonly #mostQueued: number
  readonly #engine: string
  readonly #queue: Waiting[] = []
  #taken = 0

  /** `engine`: its name in messages. */
  constructor(atOnce: number, mostQueued: number, engine: string) {
    this.#atOnce = atOnce
    this.#mostQueued = mostQueued
    this.#engine = engine
  }

  get taken(): number {
    return this.#taken
  }

  get queued(): number {
    return this.#queue.length
  }

  /** Resolves when this call may run; it then holds a slot until `release`. */
  acquire(signal: AbortSignal | undefined): Promise<void> {
    if (this.#taken < this.#atOnce) {
      this.#taken += 1
      return Promise.resolve()
    }
    if (this.#queue.length >= this.#mostQueued) {
      throw new SandboxError(
        'engine_unavailable',
        `${this.#mostQueued} calls wait for ${this.#engine} already. Try again later.`,
      )
    }
    return new Promise((resolve, reject) => this.#wait(resolve, reject, signal))
  }

  release(): void {
    const next = this.#queue.shift()
    if (next) next.go()
    else this.#taken -= 1
  }

  /** Rejects every queued call. */
  failQueued(error: SandboxError): void {
    for (const { fail } of this.#queue.splice(0)) fail(error)
  }

  #wait(resolve: () => void, reject: (error: SandboxError) => void, signal: AbortSignal | undefined): void {
    const stopWaiting = (): void =>
      reject(new SandboxError('cancelled', `Stopped waiting for ${this.#engine}.`))
    if (signal?.aborted) return stopWaiting()
    const leave = (): void => {
      this.#queue.splice(this.#queue.indexOf(waiting), 1)
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
    this.#queue.push(waiting)
    signal?.addEventListener('abort', leave)
  }
}
