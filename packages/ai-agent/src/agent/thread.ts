/**
 * The watchdog's thread: looks at the main thread from outside, and ends the process. It imports no
 * library: its heap is one more for the process.
 */
import { readFileSync, writeSync } from 'node:fs'
import { Session } from 'node:inspector'
import { workerData } from 'node:worker_threads'
import { type LastEnd, writeLastEnd } from './last-end-file.ts'
import { ASK_RUNNING_STEP, type Blame } from '../session/running-step.ts'
import type { WatchdogData } from './watchdog.ts'

const { turns, limitMs, samples, dataFolder } = workerData as WatchdogData

/** A thread's own `process.stderr` is written by the main thread. */
const STDERR = 2
/**
 * The share of a sample's time below which a thread is waiting. A busy one gets more, also on a
 * crowded machine.
 */
const BUSY_SHARE = 0.05
/** The step is asked for before the limit, since native code answers only when it returns. */
const ASK_AT = Math.ceil(samples * 0.6)
/** The unit of /proc/…/stat, on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100

let lastTurn = Atomics.load(turns, 0)
let lastCpuMs = cpuMs()
let lastAt = performance.now()
/** Busy samples in a row without a turn. */
let blocked = 0
let asked: { blame: Blame | undefined; end: () => void } | undefined

setInterval(() => {
  const turn = Atomics.load(turns, 0)
  const used = cpuMs()
  const at = performance.now()
  const isBusy = used - lastCpuMs >= (at - lastAt) * BUSY_SHARE
  blocked = turn === lastTurn && isBusy ? blocked + 1 : 0
  lastTurn = turn
  lastCpuMs = used
  lastAt = at
  if (blocked === 0) {
    asked?.end()
    asked = undefined
  }
  if (blocked >= ASK_AT) asked ??= askRunningStep()
  if (blocked >= samples) endProcess(asked?.blame)
}, limitMs / samples)

/** CPU time of the main thread; where it is not available, that of the whole process. */
function cpuMs(): number {
  if (process.platform !== 'linux') {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
  const stat = readFileSync(`/proc/self/task/${process.pid}/stat`, 'utf8')
  // After the name, which may hold spaces: the state is the first field, utime and stime the 12th
  // and 13th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND
}

/**
 * V8 answers in the middle of a loop, also of a regular expression's, in the context of the code
 * that runs there.
 */
function askRunningStep(): NonNullable<typeof asked> {
  const session = new Session()
  const question: NonNullable<typeof asked> = { blame: undefined, end: () => session.disconnect() }
  session.connectToMainThread()
  session.post('Runtime.evaluate', { expression: ASK_RUNNING_STEP }, (error, answer) => {
    const text: unknown = answer?.result.value
    if (error === null && typeof text === 'string') question.blame = JSON.parse(text) as Blame
  })
  return question
}

/** Without an answer the record is left out: then any prompt may have been it. */
function endProcess(found: Blame | undefined): void {
  const fields = { ...found, ...(found === undefined ? {} : record({ how: 'blocked', step: found.step })) }
  const seconds = Math.round(limitMs / 1000)
  const msg = `The agent was blocked for ${seconds} s and is started again`
  const line = { level: 50, time: new Date().toISOString(), part: 'ai-agent', ...fields, msg }
  try {
    writeSync(STDERR, `${JSON.stringify(line)}\n`)
  } finally {
    process.kill(process.pid, 'SIGKILL')
  }
}

/** A full disk must not keep the process blocked. */
function record(end: LastEnd): { recordError?: string } {
  try {
    writeLastEnd(dataFolder, end)
    return {}
  } catch (error) {
    return { recordError: String(error) }
  }
}
