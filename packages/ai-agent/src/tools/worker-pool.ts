/**
 * Threads for work that may never end, such as matching a pattern of a stranger: only the thread of
 * a job that runs too long is ended.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
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

/** Milliseconds between two looks at the CPU time of a thread. */
const LOOK_MS = 20

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
  readonly #idle: Worker[] = []
  readonly #all = new Set<Worker>()
  readonly #waiting: (() => void)[] = []
  #running = 0

  /** Starts nothing. */
  constructor(options: WorkerPoolOptions) {
    this.#options = options
  }

  /** Rejects with `JobTooSlowError`, the signal's reason, or the error that ended the thread. */
  async run(job: Job, limits: JobLimits): Promise<{ answer: Answer; cpuMs: number }> {
    if (this.#running < this.#options.threads) this.#running++
    else await new Promise<void>((resolve) => void this.#waiting.push(resolve))
    try {
      return await this.#runNow(job, limits)
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }

  /** Ends the threads. A job that runs does not resolve. */
  async close(): Promise<void> {
    await Promise.all([...this.#all].map((worker) => worker.terminate()))
  }

  async #runNow(
    job: Job,
    { signal, cpuMs = Infinity }: JobLimits,
  ): Promise<{ answer: Answer; cpuMs: number }> {
    const worker = this.#idle.pop() ?? (await this.#start())
    worker.ref()
    const over = new AbortController()
    try {
      const before = await worker.cpuUsage()
      const message = once(worker, 'message')
      worker.postMessage(job)
      const looks = setInterval(() => {
        void cpuMsSince(worker, before).then((used) => {
          if (used >= cpuMs) over.abort(new JobTooSlowError(used))
        })
      }, LOOK_MS)
      const limit = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal])
      const [answer] = (await orAborted(message, limit).finally(() => clearInterval(looks))) as [Answer]
      const used = await cpuMsSince(worker, before)
      worker.unref()
      this.#idle.push(worker)
      return { answer, cpuMs: used }
    } catch (error) {
      void worker.terminate()
      throw error
    }
  }

  async #start(): Promise<Worker> {
    const { script, workerData, maxHeapMb } = this.#options
    const worker = new Worker(script, {
      workerData,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMb },
    })
    this.#all.add(worker)
    // An error rejects the job that runs; without a listener it would end the process.
    worker.on('error', () => undefined)
    worker.on('exit', () => {
      this.#all.delete(worker)
      const place = this.#idle.indexOf(worker)
      if (place !== -1) this.#idle.splice(place, 1)
    })
    await once(worker, 'message')
    return worker
  }
}

/** 0 for a thread that has ended. */
async function cpuMsSince(worker: Worker, before: NodeJS.CpuUsage): Promise<number> {
  try {
    const { user, system } = await worker.cpuUsage(before)
    return (user + system) / 1_000
  } catch {
    return 0
  }
}
