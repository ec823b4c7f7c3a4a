/**
 * Progress of an upgrade, in the checkout: the next `up` or `upgrade` finishes or undoes a killed
 * one. The launcher also reads it, without Node, as the checkout may be half switched.
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
   * checked out and being checked. `undo`: back to the old version and its data. `restart`: both
   * are restored.
   */
  step: z.enum(['backup', 'stop', 'copy', 'switch', 'start', 'undo', 'restart']),
  /** Commit of the checkout after this step. */
  checkout: commit,
  owner: z.object({ pid: z.int(), started: z.string() }),
  from: z.object({ commit, name: z.string(), branch: z.string().optional() }),
  to: z.object({ commit, name: z.string() }),
  /** The branch moves to the new commit, as with `git pull`. */
  movesBranch: z.boolean(),
  data: z.string(),
  wasRunning: z.boolean(),
  /** `up --replicas`; absent: one. */
  replicas: z.int().optional(),
})
export type Journal = z.infer<typeof journal>

const fileOf = (root: string): string => join(root, '.sandlot-upgrade.json')

/** The journal of an upgrade whose process has ended. */
export function interruptedUpgrade({ root }: Pick<CliConfig, 'root'>): Journal | undefined {
  const found = readJournal(root)
  return found === undefined || isRunning(found.owner) ? undefined : found
}

export function readJournal(root: string): Journal | undefined {
  try {
    return journal.parse(JSON.parse(readFileSync(fileOf(root), 'utf8')))
  } catch {
    return undefined // none: it is written atomically
  }
}

/** Records that this process begins `step`. The launcher relies on the order of the members. */
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
