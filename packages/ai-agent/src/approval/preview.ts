/** What a rule would have answered to the calls of the past: logs in, verdicts out. */
import type { Mode } from '@sandlot/shared/mode'
import { type SessionEvent, metaOf } from '@sandlot/shared/events'
import type { Rule, Verdict } from '@sandlot/shared/rules'
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import { type SandboxReach, judge } from './engine.ts'
import type { CallRequest } from './request.ts'

export interface PastCall {
  sessionId: string
  toolCallId: string
  title: string
  /** Epoch milliseconds. */
  at: number
  mode: Mode
  request: CallRequest
}

/**
 * The calls of a log that could be judged: those with a `requestOf`. `mode`: the session's now;
 * what it was before the first change of it is not in the log, so that stands in for it.
 */
export function pastCalls(
  sessionId: string,
  events: readonly SessionEvent[],
  mode: Mode,
  requestOf: (tool: string, args: unknown) => CallRequest | undefined,
): PastCall[] {
  const calls: PastCall[] = []
  let current = mode
  for (const event of events) {
    if (event.sessionUpdate === 'current_mode_update') current = event.currentModeId
    if (event.sessionUpdate !== 'tool_call') continue
    const request = requestOf(event.name, event.rawInput)
    if (request === undefined) continue
    const { toolCallId, title } = event
    calls.push({ sessionId, toolCallId, title, at: metaOf(event).at, mode: current, request })
  }
  return calls
}

interface Previewed {
  call: PastCall
  before: Verdict
  after: Verdict
}

/**
 * Each call as the rules judge it now, and as they would with `candidate` among them. `reachOf`:
 * what a session's commands reach now, as of `judge`.
 */
export async function preview(
  candidate: Rule,
  calls: readonly PastCall[],
  rules: readonly Rule[],
  reachOf: (sessionId: string) => SandboxReach | undefined = () => undefined,
): Promise<Previewed[]> {
  const judged: Previewed[] = []
  for (const call of calls) {
    await pauseWhenDue()
    judged.push({
      call,
      before: judge(call.request, rules, call.mode, reachOf(call.sessionId)).verdict,
      after: judge(call.request, [...rules, candidate], call.mode, reachOf(call.sessionId)).verdict,
    })
  }
  return judged
}
