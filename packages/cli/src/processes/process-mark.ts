import { readFileSync } from 'node:fs'
import { hasCode } from '@sandlot/shared/base/errors'
import { StepError } from '../steps.ts'

/**
 * A process that can be recognised again: its id, and when it started. Ids are used again by the
 * kernel, so an id from a file means nothing without the start time; the boot id tells apart two
 * machines starts with equal ticks.
 */
export interface ProcessMark {
  pid: number
  /** `<boot id>/<start in clock ticks since boot>` */
  started: string
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined // the process is gone, which is an answer
  }
}

/** Fields of /proc/<pid>/stat behind the name, which is in parentheses and may hold anything. */
export function parseStat(stat: string): { state: string; startTicks: string } | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const state = fields[0]
  const startTicks = fields[19]
  return state === undefined || startTicks === undefined ? undefined : { state, startTicks }
}

/** The mark of a running process; undefined when there is none, or it is a zombie. */
export function markOf(pid: number): ProcessMark | undefined {
  const stat = parseStat(read(`/proc/${pid}/stat`) ?? '')
  if (stat === undefined || stat.state === 'Z' || stat.state === 'X') return undefined
  const boot = (read('/proc/sys/kernel/random/boot_id') ?? 'unknown').trim()
  return { pid, started: `${boot}/${stat.startTicks}` }
}

/** The mark of this process. @throws StepError on a machine without /proc. */
export function ownMark(): ProcessMark {
  const self = markOf(process.pid)
  if (self !== undefined) return self
  throw new StepError(
    'This process cannot be found in /proc.',
    'Mount /proc, then run the same command again.',
  )
}

/** Whether exactly this process still runs. */
export function isRunning(mark: ProcessMark): boolean {
  return markOf(mark.pid)?.started === mark.started
}

/**
 * Send `signal` to the process if it is still the same one. `group` sends it to the process group
 * it leads.
 */
export function signalProcess(mark: ProcessMark, signal: NodeJS.Signals, group = false): boolean {
  if (!isRunning(mark)) return false
  try {
    process.kill(group ? -mark.pid : mark.pid, signal)
    return true
  } catch (error) {
    // It ended between the look and the signal.
    if (hasCode(error, 'ESRCH')) return false
    throw error
  }
}

/** Wait until the process is gone; false when it still runs after `timeoutMs`. */
export async function waitForEnd(mark: ProcessMark, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  while (isRunning(mark)) {
    if (performance.now() > deadline) return false
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return true
}
