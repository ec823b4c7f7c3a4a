/** The processes that a process started, as Linux knows them. Elsewhere none are found, and the group has to do. */
import { readFileSync, readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** One process; `started` tells it from a later one with the same number. */
export interface SeenProcess {
  pid: number
  started: string
}

/** Everything below `root` now, and whatever else is of its process group; without `root` itself. */
export function processesOf(root: number): SeenProcess[] {
  const all = processNames().flatMap((name) => statOf(Number(name)) ?? [])
  const found = new Map<number, SeenProcess>()
  const below = [root]
  for (const { pid, started, group } of all)
    if (group === root && pid !== root) found.set(pid, { pid, started })
  for (let parent = below.pop(); parent !== undefined; parent = below.pop()) {
    for (const child of all) {
      if (child.parent !== parent) continue
      found.set(child.pid, { pid: child.pid, started: child.started })
      below.push(child.pid)
    }
  }
  return [...found.values()]
}

/** Kill those that are still the same processes. */
export function killAll(processes: readonly SeenProcess[]): void {
  for (const one of processes) if (isRunning(one)) signal(one.pid, 'SIGKILL')
}

/** Resolves when none of them runs any more, or after `ms`: a kill is only the beginning of an end. */
export async function ended(processes: readonly SeenProcess[], ms: number): Promise<void> {
  const until = performance.now() + ms
  while (processes.some(isRunning) && performance.now() < until) await sleep(5)
}

function isRunning({ pid, started }: SeenProcess): boolean {
  const stat = statOf(pid)
  return stat?.started === started && stat.state !== 'Z'
}

/** Sends it, to a group when the number is negative. Silent when there is nobody any more. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    const gone = error instanceof Error && 'code' in error && error.code === 'ESRCH'
    if (!gone) throw error
  }
}

function processNames(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    // Not Linux.
    return []
  }
}

interface Stat extends SeenProcess {
  state: string
  parent: number
  group: number
}

function statOf(pid: number): Stat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold spaces and brackets itself.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state = '', parent, group] = fields
    return { pid, state, parent: Number(parent), group: Number(group), started: fields[19] ?? '' }
  } catch {
    // It has ended since.
    return undefined
  }
}
