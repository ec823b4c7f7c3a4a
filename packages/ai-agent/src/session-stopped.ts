/**
 * What a stopped prompt had begun in the sandbox and a death of this process let run on. Stop was in the log, the sandbox
 * did not hear of it any more: it hears now, or the command would run to its time limit behind the user's back.
 */
import { messageOf } from '@sandlot/shared/errors'
import { type SessionEvent, isOutcome, metaOf } from '@sandlot/shared/events'
import type { SessionCore } from './session-core.ts'
import { commandId } from './tools/command-id.ts'

/** The prompt's end does not wait longer than this for a sandbox that neither wakes nor fails, in milliseconds. */
const PATIENCE_MS = 10_000
/** From TERM to KILL. */
const GRACE_MS = 1_000

interface Attempt {
  turn: number
  callId: string
  n: number
  boot: string
}

/** End the commands of this prompt that the log has no outcome of. Never rejects. */
export async function endWhatRunsOn(core: SessionCore, promptId: string): Promise<void> {
  const attempts = openAttempts(core.log, promptId)
  if (attempts.length === 0) return
  try {
    const patience = AbortSignal.any([core.leaving, AbortSignal.timeout(PATIENCE_MS)])
    const sandbox = await core.parts.sandbox(core.userId, patience)
    for (const { turn, callId, n, boot } of attempts) {
      if (sandbox.bootId !== boot) continue
      const id = commandId({ sessionId: core.id, promptId, turn, callId, attempt: n })
      const command = await sandbox.attach(id)
      await command?.cancel(GRACE_MS)
    }
  } catch (error) {
    if (core.leaving.aborted) return
    const fields = { sessionId: core.id, promptId, error: messageOf(error) }
    core.parts.log.warn(fields, 'what a stopped prompt had begun may still run in the sandbox')
  }
}

/** The last attempt of each call that was begun in a sandbox and has no outcome. */
function openAttempts(log: readonly SessionEvent[], promptId: string): Attempt[] {
  const open = new Map<string, Attempt>()
  for (const event of log) {
    if (event.sessionUpdate !== 'tool_call_update') continue
    const { toolCallId: callId } = event
    const { attempt, turn, promptId: of } = metaOf(event)
    if (isOutcome(event)) open.delete(callId)
    else if (attempt !== undefined && turn !== undefined && of === promptId)
      open.set(callId, { turn, callId, ...attempt })
  }
  return [...open.values()]
}
