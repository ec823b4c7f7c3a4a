/** The end of a prompt whose loop was ended by a bug, or by a store that failed. */
import { messageOf } from '@sandlot/shared/base/errors'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { isRefusal } from '@sandlot/storage/storage-error'
import { BUG_TEXT, errorEvent, missingOutcomes, storeFailedEnd } from '../loop/endings.ts'
import type { Answers } from './answers.ts'
import type { Running } from './running.ts'
import type { SessionCore } from './core.ts'
import type { PromptWaiters } from './prompt-waiters.ts'

interface BrokenOff {
  core: SessionCore
  answers: Answers
  waiters: PromptWaiters
  running: Running
  /** The loop's error. */
  cause: unknown
  /** Stores an end, with what follows it. Only inside `inTurn`. */
  storeEnd: (end: SessionEvent) => Promise<void>
}

/**
 * Stores what is missing, and notifies those who wait for the end in any case. Where the database
 * as a whole does not work, the prompt has no end, and resumes later. Never rejects.
 */
export async function breakOff(brokenOff: BrokenOff): Promise<void> {
  const { core, waiters, running, cause } = brokenOff
  running.stop.abort('interrupted')
  try {
    await core.inTurn(() => storeMissing(brokenOff))
    if (core.unsavedEnd !== undefined) waiters.notify(core.state())
  } catch (error) {
    const fields = { sessionId: core.id, promptId: running.promptId, error: messageOf(error) }
    core.parts.log.warn(fields, 'the end of a prompt could not be stored')
    core.running = undefined
    waiters.notify(core.state(), cause)
  }
}

/**
 * Outcomes, and the end. A refused event is left out, since it would be refused again; where the
 * end itself is refused, the prompt ends in memory.
 */
async function storeMissing({ core, answers, running, cause, storeEnd }: BrokenOff): Promise<void> {
  const { promptId } = running
  const at = core.parts.now()
  let refused = isRefusal(cause)
  const unlessRefused = async (work: () => Promise<void>): Promise<boolean> => {
    try {
      await work()
      return true
    } catch (error) {
      if (!isRefusal(error)) throw error
      const fields = { sessionId: core.id, promptId, error: messageOf(error) }
      core.parts.log.warn(fields, 'the store refused an event')
      refused = true
      return false
    }
  }
  // Or a question would wait for ever whose call has ended.
  await unlessRefused(() => answers.denyUnanswerable())
  for (const lost of missingOutcomes(core.log, promptId, 'tool_error', at))
    await unlessRefused(() => core.store([lost]))
  const end = refused
    ? storeFailedEnd(promptId, at)
    : errorEvent(promptId, { cause: 'internal' }, BUG_TEXT, at)
  if (!(await unlessRefused(() => storeEnd(end)))) await core.endUnsaved(promptId)
}
