/** The processes that a process started, as Linux knows them. Elsewhere none are found, and the group has to do. */
import { readFileSync, readdirSync } from 'node:fs'

/** One process; `started` tells it from a later one with the same number. */
export interface SeenProcess {
  pid: number
  started: string
}

/** Everything below `root` now, without `root` itself. */
export function descendantsOf(root: number): SeenProcess[] {
  const children = new Map<number, SeenProcess[]>()
  for (const name of processNames()) {
    const stat = statOf(Number(name))
    if (stat === undefined) continue
    const siblings = children.get(stat.parent) ?? []
    siblings.push({ pid: Number(name), started: stat.started })
    children.set(stat.parent, siblings)
  }
  const found: SeenProcess[] = []
  const below = [root]
  for (let parent = below.pop(); parent !== undefined; parent = below.pop()) {
    for (const child of children.get(parent) ?? []) {
      found.push(child)
      below.push(child.pid)
    }
  }
  return found
}

/** Kill those that are still the same processes. */
export function killAll(processes: readonly SeenProcess[]): void {
  for (const { pid, started } of processes) if (statOf(pid)?.started === started) signal(pid, 'SIGKILL')
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

function statOf(pid: number): { parent: number; started: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold spaces and brackets itself.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { parent: Number(fields[1]), started: fields[19] ?? '' }
  } catch {
    // It has ended since.
    return undefined
  }
}
