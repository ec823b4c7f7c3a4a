/** What a running prompt's calls get of their session. */
import { type Mode, type SessionEvent, isLive, isOutcome, metaOf } from '@sandlot/shared/events'
import { judge } from './rules/engine.ts'
import { offers } from './rules/offers.ts'
import { callRequest } from './rules/request.ts'
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
  appendOutput: BatchContext['appendOutput']
  /** Aborted when this process lets go of the session. */
  leaving: AbortSignal
  parts: Pick<SessionParts, 'store' | 'sandbox' | 'rules' | 'secrets' | 'log'>
}

export function batchContext(source: BatchSource): BatchContext {
  const { sessionId, userId, running, turn, tools, events, approvals, mode, appendOutput, leaving } = source
  const { store, sandbox, rules, secrets, log } = source.parts
  // As of now: what this process begins does not count.
  const begun = new Set(events.flatMap(begunCall))
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
    judge: async (call) => {
      const request = callRequest(call)
      const held = [...(await rules.of(userId)), ...approvals.sessionRules]
      const judgement = judge(request, held, mode())
      return { ...judgement, options: offers(request, judgement, rules.remember) }
    },
    previousAttempt: (callId) => previousAttempt(events, callId),
    begunBefore: (callId) => begun.has(callId),
    announced: (callId) =>
      events.some((event) => event.sessionUpdate === 'tool_call' && event.toolCallId === callId),
    appendOutput,
    readOutput: (callId, from, to) => store.readOutput(sessionId, callId, from, to),
    events: () => events,
    ...(secrets === undefined ? {} : { secret: (name: string) => secrets.get(userId, name) }),
    log,
  }
}

function begunCall(event: SessionEvent): string[] {
  const begins =
    event.sessionUpdate === 'tool_call_update' && event.status === 'in_progress' && !isLive(event)
  return begins ? [event.toolCallId] : []
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
