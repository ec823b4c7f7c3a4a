/** The session's part of the context of a running prompt's calls. */
import type { Mode } from '@sandlot/shared/chat/mode'
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
import { callsBefore } from '../history/read-log.ts'
import type { BatchContext, BatchOutputs } from '../calls/batch.ts'
import type { PromptChanges } from '../workspace/prompt-changes.ts'
import type { Approvals } from './approvals.ts'
import type { RunnerParts } from './parts.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import type { Running } from './running.ts'
import { rulingOf } from './rulings.ts'

interface BatchSource {
  sessionId: string
  userId: string
  running: Running
  turn: number
  tools: Pick<ToolRegistry, 'getTool' | 'listTools'>
  /** See `CallIds`. */
  folder: string | undefined
  log: () => readonly SessionEvent[]
  approvals: Approvals
  mode: () => Mode
  appendOutput: BatchOutputs['append']
  /** Shows a live event. */
  show: (event: SessionEvent) => void
  /** See `SessionCore.released`. */
  released: AbortSignal
  /** Absent: changes of the prompt are not reported. */
  changes: PromptChanges | undefined
  parts: Pick<RunnerParts, 'store' | 'sandbox' | 'rules' | 'externalAccess' | 'secrets' | 'log' | 'now'>
}

export function batchContext(source: BatchSource): BatchContext {
  const {
    sessionId,
    userId,
    running,
    turn,
    tools,
    log,
    approvals,
    mode,
    appendOutput,
    show,
    released,
    changes,
  } = source
  const { store, sandbox, secrets, now, log: agentLog } = source.parts
  return {
    ids: { sessionId, userId, promptId: running.promptId, turn, folder: source.folder },
    tools,
    signal: AbortSignal.any([running.stop.signal, released]),
    cancelSignal: (callId) => running.cancelOf(callId).signal,
    sandbox: async (signal, readOnly) => {
      const acquired = await sandbox(userId, signal, (wait) => {
        const event = { type: 'line_waited', ...wait } as const
        show(makeSandlotEvent(event, { promptId: running.promptId, turn, live: true }, now()))
      })
      if (!readOnly) await changes?.watch(acquired)
      return acquired
    },
    approvals: {
      of: (callId) => approvals.of(callId),
      judge: (call, by) => {
        running.judged.set(call.callId, { call, by })
        const at = { sessionId, promptId: running.promptId }
        return rulingOf({ call, by }, { userId, at, approvals, mode: mode(), parts: source.parts })
      },
    },
    before: callsBefore(log()),
    outputs: {
      append: appendOutput,
      read: (callId, from, to) => store.readOutput(sessionId, callId, from, to),
    },
    events: log,
    secret: secrets === undefined ? undefined : (name: string) => secrets.get(userId, name),
    now,
    log: agentLog,
  }
}
