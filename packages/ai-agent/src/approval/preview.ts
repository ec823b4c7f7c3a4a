/** The answers that a rule would have given to past calls: logs in, verdicts out. */
import type { Mode } from '@sandlot/shared/chat/mode'
import { type SessionEvent, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import type { Rule, RuleMatch, Verdict } from '@sandlot/shared/chat/rules'
import type { PermissionOption } from '@sandlot/shared/chat/sandlot-event'
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import { type ExternalAccess, judge } from './engine.ts'
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
 * Each call as the rules judge it now, and as they would with `candidate` among them.
 * `externalAccessOf`: the current external access of a session's commands, as in `judge`.
 */
export async function preview(
  candidate: Rule,
  calls: readonly PastCall[],
  rules: readonly Rule[],
  externalAccessOf: (sessionId: string) => ExternalAccess | undefined = () => undefined,
): Promise<Previewed[]> {
  const judged: Previewed[] = []
  for (const call of calls) {
    await pauseWhenDue()
    judged.push({
      call,
      before: judge(call.request, rules, call.mode, externalAccessOf(call.sessionId)).verdict,
      after: judge(call.request, [...rules, candidate], call.mode, externalAccessOf(call.sessionId)).verdict,
    })
  }
  return judged
}

// ── What rules would have saved ─────────────────────────────────────────────────────────────────

interface Saving {
  match: RuleMatch
  times: number
  title: string
}

/**
 * Rules that would have answered questions to a person since `since`, the most useful first: as
 * each question offered to remember them. Without calls that were ever denied, and without `known`.
 * `questions`: how many asked for something else than approval.
 */
export function savingRules(
  logs: readonly (readonly SessionEvent[])[],
  since: number,
  known: readonly Rule[],
): { questions: number; saving: Saving[] } {
  const found = new Map<string, Saving & { at: number; denied: boolean }>()
  let questions = 0
  for (const log of logs) {
    const titles = new Map<string, string>()
    const asked = new Map<string, RuleMatch | undefined>()
    for (const event of log) {
      if (event.sessionUpdate === 'tool_call') titles.set(event.toolCallId, event.title)
      const happened = sandlotEventOf(event)
      if (happened?.type === 'approval_asked' && metaOf(event).at >= since) {
        if (happened.question !== undefined) questions++
        else asked.set(happened.toolCallId, offeredRule(happened.options))
      }
      if (happened?.type !== 'approval_answered' || happened.by !== 'user') continue
      const match = asked.get(happened.toolCallId)
      if (match === undefined) continue
      const key = JSON.stringify(match)
      const before = found.get(key) ?? { match, times: 0, title: '', at: 0, denied: false }
      const { at } = metaOf(event)
      const latest = at < before.at ? before : { title: titles.get(happened.toolCallId) ?? '', at }
      const denied = before.denied || !happened.allowed
      found.set(key, { match, times: before.times + 1, title: latest.title, at: latest.at, denied })
    }
  }
  const held = new Set(known.map(({ match }) => JSON.stringify(match)))
  const saving = [...found]
    .filter(([key, { denied, times }]) => !denied && times > 1 && !held.has(key))
    .map(([, { match, times, title }]) => ({ match, times, title }))
    .toSorted((a, b) => b.times - a.times)
  return { questions, saving }
}

/** The widest rule that the question offered to keep; undefined where it took several. */
function offeredRule(options: readonly PermissionOption[]): RuleMatch | undefined {
  const remembered = options.flatMap(({ remembers }) =>
    remembers?.scope === 'always' ? [remembers.rules] : [],
  )
  const [rule, another] = remembered.at(-1) ?? []
  return another === undefined ? rule : undefined
}
