import { readFileSync } from 'node:fs'
import { hasCode } from '@sandlot/shared/base/errors'
import { StepError } from '../steps.ts'

/**
 * Identifies a process across restarts of the launcher. The kernel reuses ids, so the start time is
 * needed too, and the boot id distinguishes equal start times of two boots.
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
    return undefined // the process has ended
  }
}

/** Fields of /proc/<pid>/stat after the name, which is in parentheses and may hold anything. */
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
  throw new StepError('This process is not in /proc.', 'Mount /proc, then run the same command again.')
}

/** True if exactly this process still runs. */
export function isRunning(mark: ProcessMark): boolean {
  return markOf(mark.pid)?.started === mark.started
}

/** Sends `signal` to the process, or to the `group` it leads, if it is still the same one. */
export function signalProcess(mark: ProcessMark, signal: NodeJS.Signals, group = false): boolean {
  if (!isRunning(mark)) return false
  try {
    process.kill(group ? -mark.pid : mark.pid, signal)
    return true
  } catch (error) {
    // It ended after the check.
    if (hasCode(error, 'ESRCH')) return false
    throw error
  }
}

/** False when the process still runs after `timeoutMs`. */
export async function waitForEnd(mark: ProcessMark, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  while (isRunning(mark)) {
    if (performance.now() > deadline) return false
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return true
}
