/** The cgroup of a test cluster: every process of it, Pods included, is below; so all can be found and ended. */
import { existsSync, globSync, mkdirSync, readFileSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const ROOT = '/sys/fs/cgroup'
/** With version 1 there is one tree for each controller. */
const TREES = existsSync(join(ROOT, 'cgroup.controllers'))
  ? [ROOT]
  : readdirSync(ROOT).map((name) => join(ROOT, name))
/** The tree in which the parts are; containers are in all. */
const PARTS = TREES.find((tree) => tree === ROOT || tree.endsWith('/pids')) ?? ROOT

/** The file that takes process ids into `group` of a cluster. */
export function cgroupFile(id: string, group: string): string {
  return join(PARTS, id, group, 'cgroup.procs')
}

/** Makes the groups of a cluster, `nodeN` of which are those of the Pods of a node. */
export function makeCgroups(id: string): void {
  for (const tree of TREES)
    for (const group of ['', 'node1', 'node2', ...(tree === PARTS ? ['control', 'parts1', 'parts2'] : [])]) {
      mkdirSync(join(tree, id, group), { recursive: true })
      // A new group of this controller has no processor until it is given one.
      if (tree.endsWith('/cpuset'))
        for (const name of ['cpuset.cpus', 'cpuset.mems'])
          writeFileSync(join(tree, id, group, name), readFileSync(join(tree, name)))
    }
}

/** Kills every process in and below these groups of a cluster. Rejects when one is still there after ten seconds. */
export async function killCgroups(id: string, groups: readonly string[]): Promise<void> {
  const deadline = performance.now() + 10_000
  const files = (): string[] => groups.flatMap((group) => globSync(join(PARTS, id, group, '**/cgroup.procs')))
  for (;;) {
    const pids = files().flatMap(readPids)
    if (pids.length === 0) return
    if (performance.now() > deadline) throw new Error(`Processes of ${id} do not end: ${pids.join(', ')}`)
    for (const pid of pids) kill(pid)
    await sleep(20)
  }
}

/** Removes the groups of a cluster, whose processes have ended. */
export async function removeCgroups(id: string): Promise<void> {
  const folders = (): string[] =>
    TREES.flatMap((tree) => globSync(join(tree, id, '**/'))).toSorted((a, b) => b.length - a.length)
  for (let tries = 0; folders().length > 0; tries++) {
    for (const folder of folders())
      try {
        rmdirSync(folder)
      } catch (error) {
        // The kernel gives a group free a moment after its last process.
        if (tries === 100) throw error
      }
    await sleep(20)
  }
}

function readPids(file: string): number[] {
  try {
    return readFileSync(file, 'utf8').split('\n').filter(Boolean).map(Number)
  } catch {
    return [] // the group has gone
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it has ended
  }
}
