/** What a running prompt's calls get of their session. */
import type { Mode } from '@sandlot/shared/chat/mode'
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
import { callsBefore } from '../history/read-log.ts'
import { judge } from '../approval/engine.ts'
import { approvalOptions } from '../approval/options.ts'
import { callRequest } from '../approval/request.ts'
import type { BatchContext, BatchOutputs } from '../calls/batch.ts'
import type { PromptChanges } from '../workspace/prompt-changes.ts'
import type { OnBehalf } from './access.ts'
import type { Approvals } from './approvals.ts'
import type { RunnerParts } from './parts.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import type { JudgedBy, Ruling, ToolCall } from '../tools/tool.ts'

/** One running prompt. */
export class Running {
  readonly promptId: string
  /** No client can answer an approval. */
  readonly unattended: boolean
  /** The highest mode that it runs in, whatever the session's is. */
  readonly modeCeiling: Mode
  /** Whose limits it counts for; absent: the owner's. */
  readonly chargedTo: string | undefined
  /** An administrator stopped it. */
  stoppedByAdministrator = false
  /** Aborted by Stop. */
  readonly stop = new AbortController()
  /** Resolves when the loop has ended or the session is released. */
  driven: Promise<void> = Promise.resolve()
  /** Calls that were judged, for when the rules have changed. */
  readonly judged = new Map<string, { call: ToolCall; by: JudgedBy | undefined }>()
  readonly #cancels = new Map<string, AbortController>()

  constructor(promptId: string, unattended: boolean, { modeCeiling = 'yolo', chargedTo }: OnBehalf = {}) {
    this.promptId = promptId
    this.unattended = unattended
    this.modeCeiling = modeCeiling
    this.chargedTo = chargedTo
  }

  /** Aborts when only this call is cancelled. */
  cancelOf(callId: string): AbortController {
    let controller = this.#cancels.get(callId)
    if (controller === undefined) {
      controller = new AbortController()
      this.#cancels.set(callId, controller)
    }
    return controller
  }
}

interface BatchSource {
  sessionId: string
  userId: string
  running: Running
  turn: number
  tools: Pick<ToolRegistry, 'getTool' | 'listTools'>
  /** As of `CallIds`. */
  folder: string | undefined
  log: () => readonly SessionEvent[]
  approvals: Approvals
  mode: () => Mode
  appendOutput: BatchOutputs['append']
  /** Shows a live event. */
  show: (event: SessionEvent) => void
  /** As `SessionCore.released`. */
  released: AbortSignal
  /** Absent: what the prompt changes is not told. */
  changes: PromptChanges | undefined
  parts: Pick<RunnerParts, 'store' | 'sandbox' | 'rules' | 'beyond' | 'secrets' | 'log' | 'now'>
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

/**
 * What the rules that hold now say of a call, and the answers that its question offers. Rejects
 * when the store fails.
 */
export async function rulingOf(
  { call, by }: { call: ToolCall; by: JudgedBy | undefined },
  held: {
    userId: string
    at: { sessionId: string; promptId: string }
    approvals: Approvals
    mode: Mode
    parts: Pick<RunnerParts, 'rules' | 'beyond'>
  },
): Promise<Ruling> {
  const { userId, at, approvals, mode } = held
  const { rules, beyond } = held.parts
  const request = callRequest(call, by?.paths)
  const ruled = [...(await rules.of(userId, at)), ...approvals.rulesAt(at)]
  const reached = beyond === undefined ? 'may reach a network' : beyond(at.sessionId, userId, ruled)
  const reach = { beyond: reached, lost: by?.lost }
  const judgement = judge(request, ruled, mode, reach)
  return { ...judgement, options: approvalOptions(request, judgement, rules.remember) }
}
