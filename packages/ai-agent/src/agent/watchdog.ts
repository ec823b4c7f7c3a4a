/**
 * Ends the process when its only thread is blocked: code that never returns would hold everybody's
 * chats up for ever. What supervises the process (`up`, compose) starts it again. A thread that
 * waits for a stalled disk uses no CPU time and is left alone.
 */
import { Worker } from 'node:worker_threads'
import { exposeRunningStep } from '../session/running-step.ts'
import type { Log } from '../log.ts'

/** Milliseconds that the main thread may be busy without a turn of its event loop. */
const LIMIT_MS = 30_000

/** Start data of the thread. `turns`: a counter that the main thread raises with each turn. */
export interface WatchdogData {
  turns: Int32Array<SharedArrayBuffer>
  limitMs: number
  /** Looks at the main thread in one limit. */
  samples: number
  dataFolder: string
}

const SAMPLES = 10

const THREAD = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url)

/** Start it, for the life of the process. It keeps no process alive. */
export function startWatchdog(dataFolder: string, log: Pick<Log, 'warn'>, limitMs = LIMIT_MS): void {
  exposeRunningStep()
  const turns = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const workerData: WatchdogData = { turns, limitMs, samples: SAMPLES, dataFolder }
  const thread = new Worker(THREAD, {
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
  })
  thread.on('error', (err) => log.warn({ err }, 'the watchdog has ended; a blocked agent would stay blocked'))
  thread.unref()
  setInterval(() => Atomics.add(turns, 0, 1), limitMs / SAMPLES / 3).unref()
}
