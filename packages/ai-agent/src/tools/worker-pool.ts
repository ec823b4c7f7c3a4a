/**
 * Threads for work that may never end, such as matching a pattern of a stranger: only the thread of
 * a job that runs too long is ended.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { FairQueue } from '@sandlot/shared/async/fair-queue'
import { orAborted } from '@sandlot/shared/async/or-aborted'

interface WorkerPoolOptions {
  /**
   * Posts one message when it is loaded, and then answers each message with one. Of this repository
   * it imports types only: a thread has no loader for the rest.
   */
  script: URL
  /** Jobs at the same time; the others wait in their order. */
  threads: number
  workerData?: unknown
  /** A thread that needs more is ended, and its job rejects. */
  maxHeapMb?: number
}

interface JobLimits {
  signal?: AbortSignal
  /** Milliseconds of the processor, so that a crowded machine ends no job. */
  cpuMs?: number
}

interface Thread {
  worker: Worker
  loaded: Promise<unknown>
  ended: AbortSignal
}

/** Milliseconds between two looks at the CPU time of a thread. */
const CHECK_MS = 20

export class JobTooSlowError extends Error {
  override readonly name = 'JobTooSlow'
  readonly cpuMs: number
  constructor(cpuMs: number) {
    super(`it took more than ${Math.floor(cpuMs)} ms`)
    this.cpuMs = cpuMs
  }
}

export class WorkerPool<Job, Answer> {
  readonly #options: WorkerPoolOptions
  readonly #turns: FairQueue
  readonly #idle: Thread[] = []
  readonly #all = new Set<Worker>()

  /** Starts nothing. */
  constructor(options: WorkerPoolOptions) {
    this.#options = options
    this.#turns = new FairQueue(options.threads)
  }

  /** Rejects with `JobTooSlowError`, the signal's reason, or why the thread ended. */
  run(job: Job, limits: JobLimits): Promise<{ answer: Answer; cpuMs: number }> {
    return this.#turns.run('', () => this.#runNow(job, limits))
  }

  /** Ends the threads, so that a job that runs rejects. */
  async close(): Promise<void> {
    await Promise.all([...this.#all].map((worker) => worker.terminate()))
  }

  async #runNow(
    job: Job,
    { signal, cpuMs = Infinity }: JobLimits,
  ): Promise<{ answer: Answer; cpuMs: number }> {
    const thread = this.#idle.pop() ?? this.#start()
    const { worker, loaded, ended } = thread
    worker.ref()
    const over = new AbortController()
    const limit = AbortSignal.any([ended, over.signal, ...(signal === undefined ? [] : [signal])])
    let checks: NodeJS.Timeout | undefined
    try {
      await orAborted(loaded, limit)
      const before = await worker.cpuUsage()
      const used = async (): Promise<number> => {
        const { user, system } = await worker.cpuUsage(before)
        return (user + system) / 1_000
      }
      const check = async (): Promise<void> => {
        const ms = await used()
        if (ms >= cpuMs) over.abort(new JobTooSlowError(ms))
      }
      checks = setInterval(() => void Promise.allSettled([check()]), CHECK_MS)
      const message = once(worker, 'message')
      worker.postMessage(job)
      const [answer] = (await orAborted(message, limit)) as [Answer]
      const done = { answer, cpuMs: await used() }
      worker.unref()
      this.#idle.push(thread)
      return done
    } catch (error) {
      void worker.terminate()
      throw error
    } finally {
      clearInterval(checks)
    }
  }

  #start(): Thread {
    const { script, workerData, maxHeapMb } = this.#options
    const worker = new Worker(script, {
      workerData,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMb },
    })
    const ended = new AbortController()
    const thread = { worker, loaded: once(worker, 'message'), ended: ended.signal }
    this.#all.add(worker)
    // An error rejects the job that runs; without a listener it would end the process.
    worker.on('error', () => undefined)
    worker.on('exit', () => {
      ended.abort(new Error('its thread ended'))
      this.#all.delete(worker)
      const place = this.#idle.indexOf(thread)
      if (place !== -1) this.#idle.splice(place, 1)
    })
    return thread
  }
}
