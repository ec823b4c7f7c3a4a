/** What a rule would have answered to the calls of the past: logs in, verdicts out. */
import type { Mode } from '@sandlot/shared/mode'
import { type SessionEvent, metaOf } from '@sandlot/shared/events'
import type { Rule, Verdict } from '@sandlot/shared/rules'
import { pauseWhenDue } from '@sandlot/storage/time-slices'
import type { Tool } from '../tools/tool.ts'
import { isZodInput } from '../tools/tool-input.ts'
import { judge } from './engine.ts'
import { type CallRequest, callRequest } from './request.ts'

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
 * The calls of a log that could be judged: of tools that there are still, with arguments that they take. `mode`: the
 * session's now; what it was before the first change of it is not in the log, so that stands in for it.
 */
export function pastCalls(
  sessionId: string,
  events: readonly SessionEvent[],
  mode: Mode,
  toolNamed: (name: string) => Tool | undefined,
): PastCall[] {
  const calls: PastCall[] = []
  let current = mode
  for (const event of events) {
    if (event.sessionUpdate === 'current_mode_update') current = event.currentModeId
    if (event.sessionUpdate !== 'tool_call') continue
    const tool = toolNamed(event.name)
    const args = tool === undefined ? undefined : checkedArguments(tool, event.rawInput)
    if (tool === undefined || args === undefined) continue
    const { toolCallId, title } = event
    const request = callRequest({ tool, args })
    calls.push({ sessionId, toolCallId, title, at: metaOf(event).at, mode: current, request })
  }
  return calls
}

function checkedArguments(tool: Tool, raw: unknown): Record<string, unknown> | undefined {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return undefined
  const given = { ...raw }
  if (isZodInput(tool.input)) return tool.input.safeParse(given).data
  return tool.input.check(given).length === 0 ? given : undefined
}

export interface Previewed {
  call: PastCall
  before: Verdict
  after: Verdict
}

/** Each call as the rules judge it now, and as they would with `candidate` among them. */
export async function preview(
  candidate: Rule,
  calls: readonly PastCall[],
  rules: readonly Rule[],
): Promise<Previewed[]> {
  const judged: Previewed[] = []
  for (const call of calls) {
    await pauseWhenDue()
    judged.push({
      call,
      before: judge(call.request, rules, call.mode).verdict,
      after: judge(call.request, [...rules, candidate], call.mode).verdict,
    })
  }
  return judged
}
