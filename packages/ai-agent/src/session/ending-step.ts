import { orTimeout } from '@sandlot/shared/async/or-timeout'
import { messageOf } from '@sandlot/shared/base/errors'
import type { Log } from '../log.ts'

/**
 * One step of going down. The next is made whatever becomes of it: a store that fails must not
 * leave containers running.
 */
export interface EndingStep {
  work: () => Promise<void>
  /** The log message when it fails, or is not done in time. */
  problem: string
  /** Milliseconds to wait for it; absent: as long as it takes. */
  withinMs?: number
}

/** Never rejects. */
export async function endingStep({ work, problem, withinMs }: EndingStep, log: Log): Promise<void> {
  try {
    if ((await orTimeout(work(), withinMs, 'late')) === 'late') log.warn({ withinMs }, problem)
  } catch (error) {
    log.warn({ error: messageOf(error) }, problem)
  }
}
