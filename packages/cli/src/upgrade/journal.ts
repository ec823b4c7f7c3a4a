/**
 * How far an upgrade has come, in the checkout that it changes: what was killed is finished or
 * undone by the next `up` or `upgrade`. The launcher reads it too, without Node, since the files of
 * a version may be half there.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { CliConfig } from '../config.ts'
import { isRunning, ownMark } from '../processes/process-mark.ts'

const commit = z.string().regex(/^[0-9a-f]{40}$/)

const journal = z.object({
  /**
   * `backup`, `stop`, `copy`: nothing has changed. `switch`: to the new version. `start`: it is
   * there, and to be checked. `undo`: back to the old version and its data. `restart`: both are
   * there.
   */
  step: z.enum(['backup', 'stop', 'copy', 'switch', 'start', 'undo', 'restart']),
  /** What the checkout should be after this step. */
  checkout: commit,
  owner: z.object({ pid: z.int(), started: z.string() }),
  from: z.object({ commit, name: z.string(), branch: z.string().optional() }),
  to: z.object({ commit, name: z.string() }),
  /** Whether the branch moves with it, as `git pull` would move it. */
  movesBranch: z.boolean(),
  data: z.string(),
  wasRunning: z.boolean(),
  /** Of `up --replicas`; absent: one. */
  replicas: z.int().optional(),
})
export type Journal = z.infer<typeof journal>

const fileOf = (root: string): string => join(root, '.sandlot-upgrade.json')

/** Of an upgrade whose process is gone; undefined without one. */
export function interruptedUpgrade({ root }: Pick<CliConfig, 'root'>): Journal | undefined {
  const found = readJournal(root)
  return found === undefined || isRunning(found.owner) ? undefined : found
}

export function readJournal(root: string): Journal | undefined {
  try {
    return journal.parse(JSON.parse(readFileSync(fileOf(root), 'utf8')))
  } catch {
    return undefined // none, since it is written whole or not at all
  }
}

/** Records that `step` begins, by this process. The launcher relies on the order of the members. */
export function enter(root: string, state: Omit<Journal, 'owner' | 'checkout'>): Journal {
  const { step, ...rest } = state
  const checkout = step === 'switch' || step === 'start' ? state.to.commit : state.from.commit
  const next: Journal = { step, checkout, owner: ownMark(), ...rest }
  const draft = `${fileOf(root)}.new`
  writeFileSync(draft, `${JSON.stringify(next)}\n`, { flush: true })
  renameSync(draft, fileOf(root))
  return next
}

export function leave(root: string): void {
  rmSync(fileOf(root), { force: true })
}
