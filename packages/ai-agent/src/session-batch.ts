/** What a running prompt's calls get of their session. */
import { type Mode, type SessionEvent, isOutcome, metaOf } from '@sandlot/shared/events'
import type { BatchContext } from './scheduler/batch.ts'
import type { Approvals } from './session-approvals.ts'
import type { SessionParts } from './session-parts.ts'
import type { ToolRegistry } from './tools/registry.ts'

/** One running prompt. */
export class Running {
  readonly promptId: string
  /** Nobody can answer an approval. */
  readonly unattended: boolean
  /** Aborted by Stop. */
  readonly stop = new AbortController()
  /** Resolves when the loop has ended or let go. */
  driven: Promise<void> = Promise.resolve()
  readonly #cancels = new Map<string, AbortController>()

  constructor(promptId: string, unattended: boolean) {
    this.promptId = promptId
    this.unattended = unattended
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

export interface BatchSource {
  sessionId: string
  userId: string
  running: Running
  turn: number
  tools: ToolRegistry
  events: readonly SessionEvent[]
  approvals: Approvals
  mode: () => Mode
  parts: Pick<SessionParts, 'store' | 'sandbox' | 'leaving' | 'log'>
}

export function batchContext(source: BatchSource): BatchContext {
  const { sessionId, userId, running, turn, tools, events, approvals, mode } = source
  const { store, sandbox, leaving, log } = source.parts
  return {
    sessionId,
    userId,
    promptId: running.promptId,
    turn,
    tools,
    signal: AbortSignal.any([running.stop.signal, leaving]),
    cancelSignal: (callId) => running.cancelOf(callId).signal,
    mode,
    sandbox: (signal) => sandbox(userId, signal),
    approval: (callId) => approvals.of(callId),
    allowedForSession: (name) => approvals.allowedForSession(name),
    previousAttempt: (callId) => previousAttempt(events, callId),
    announced: (callId) =>
      events.some((event) => event.sessionUpdate === 'tool_call' && event.toolCallId === callId),
    appendOutput: (callId, offset, bytes) => store.appendOutput(sessionId, callId, offset, bytes),
    readOutput: (callId, from, to) => store.readOutput(sessionId, callId, from, to),
    events: () => events,
    log,
  }
}

function previousAttempt(
  events: readonly SessionEvent[],
  callId: string,
): { n: number; boot: string } | undefined {
  const attempts = events.flatMap((event) =>
    event.sessionUpdate === 'tool_call_update' && event.toolCallId === callId && !isOutcome(event)
      ? [metaOf(event).attempt]
      : [],
  )
  return attempts.findLast((attempt) => attempt !== undefined)
}
