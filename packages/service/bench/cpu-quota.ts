/** A share of one core for a process, by a cgroup of its own, where this process may make one. */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '@sandlot/shared/base/errors'

const ROOT = '/sys/fs/cgroup'
const PERIOD_US = 100_000

/** Why there is no quota here; undefined: there is. */
export function quotaProblem(): string | undefined {
  const folder = folderOf('try')
  try {
    mkdirSync(folder)
    try {
      hold(folder, 1)
    } finally {
      rmdirSync(folder)
    }
    return undefined
  } catch (error) {
    return `no CPU quota can be set here: ${messageOf(error)}`
  }
}

/** Holds the process to this share until it has ended and the stack is disposed. */
export function limitCpu(pid: number, share: number, stack: DisposableStack): void {
  const folder = folderOf(String(pid))
  mkdirSync(folder)
  stack.defer(() => {
    try {
      rmdirSync(folder)
    } catch {
      // Busy until the kernel has put its last process away; an empty cgroup costs nothing.
    }
  })
  hold(folder, share)
  writeFileSync(join(folder, 'cgroup.procs'), String(pid))
}

const isSecond = (): boolean => existsSync(join(ROOT, 'cgroup.controllers'))

function folderOf(name: string): string {
  return join(ROOT, isSecond() ? '' : 'cpu', `sandlot-bench-${process.pid}-${name}`)
}

function hold(folder: string, share: number): void {
  const quota = String(Math.round(share * PERIOD_US))
  if (isSecond()) return writeFileSync(join(folder, 'cpu.max'), `${quota} ${PERIOD_US}`)
  writeFileSync(join(folder, 'cpu.cfs_period_us'), String(PERIOD_US))
  writeFileSync(join(folder, 'cpu.cfs_quota_us'), quota)
}
