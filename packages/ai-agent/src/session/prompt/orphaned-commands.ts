/**
 * Commands of calls that an earlier process began. Such a call may run on in the sandbox while this
 * process gives it the outcome `cancelled`: Stop was in the log and the sandbox did not get it any
 * more, or Stop came before the call had found its command again. The sandbox gets it here, before
 * the outcome is stored; else the command would run to its time limit behind the user's back.
 */
import { messageOf } from '@sandlot/shared/base/errors'
import { type EventGroup, type SessionEvent, isOutcome, metaOf } from '@sandlot/shared/chat/events'
import type { FailureReason } from '@sandlot/shared/chat/reasons'
import { commandId } from '../../tools/sandbox-command/command-id.ts'
import type { SessionCore } from '../core.ts'

/**
 * The outcome does not wait longer than this for a sandbox that neither wakes nor fails, in
 * milliseconds.
 */
const PATIENCE_MS = 10_000
/** From TERM to KILL. */
const GRACE_MS = 1_000
const ENDED_BY_US: ReadonlySet<FailureReason | undefined> = new Set(['cancelled', 'timeout', 'interrupted'])

interface Attempt {
  promptId: string
  turn: number
  callId: string
  n: number
  boot: string
}

/**
 * End the commands of the calls that these outcomes say we have ended. `group`: not stored yet.
 * Never rejects.
 */
export async function cancelOrphanedCommands(core: SessionCore, group: EventGroup): Promise<void> {
  const attempts = group
    .filter(isOutcome)
    .filter((event) => ENDED_BY_US.has(metaOf(event).reason))
    .flatMap(({ toolCallId }) => lastAttempt(core.log, toolCallId) ?? [])
  if (attempts.length === 0) return
  try {
    const patience = AbortSignal.any([core.released, AbortSignal.timeout(PATIENCE_MS)])
    const sandbox = await core.parts.calls.sandbox(core.userId, patience)
    const known = await sandbox.commands()
    for (const { promptId, turn, callId, n, boot } of attempts) {
      const id = commandId({ sessionId: core.id, promptId, turn, callId, attempt: n })
      const runs = known.some((command) => command.id === id && command.state === 'running')
      if (sandbox.bootId !== boot || !runs) continue
      const command = await sandbox.attach(id)
      if (command === undefined) continue
      void Promise.allSettled([command.exit.then(({ bytes }) => command.acknowledge(bytes))])
      await command.cancel(GRACE_MS)
    }
  } catch (error) {
    if (core.released.aborted) return
    const fields = { sessionId: core.id, error: messageOf(error) }
    core.parts.log.warn(fields, 'a command that was stopped may still run in the sandbox')
  }
}

/** The call's start in the log. */
function lastAttempt(log: readonly SessionEvent[], callId: string): Attempt | undefined {
  const begun = log.findLast(
    (event) =>
      event.sessionUpdate === 'tool_call_update' &&
      event.toolCallId === callId &&
      metaOf(event).attempt !== undefined,
  )
  if (begun === undefined) return undefined
  const { promptId, turn, attempt } = metaOf(begun)
  if (promptId === undefined || turn === undefined || attempt === undefined) return undefined
  return { promptId, turn, callId, ...attempt }
}
