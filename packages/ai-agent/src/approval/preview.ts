/** Where people look at their rules: list, write down, revoke, and try one on what has been. */
import { SandlotError } from '@sandlot/shared/errors'
import type { Rule, Verdict } from '@sandlot/shared/rules'
import {
  type NewRule,
  type RuleList,
  type RulePreview,
  type RulesAsk,
  MAX_PREVIEWED,
} from '@sandlot/shared/rules-api'
import type { SessionParts } from '../session/parts.ts'
import { matchProblem } from './match.ts'
import type { Mode } from '@sandlot/shared/mode'
import { type SessionEvent, metaOf } from '@sandlot/shared/events'
import { pauseWhenDue } from '@sandlot/storage/time-slices'
import type { Tool } from '../tools/tool.ts'
import { isZodInput } from '../tools/tool-input.ts'
import { judge } from './engine.ts'
import { type CallRequest, callRequest } from './request.ts'

/** How far back a preview looks. */
const SESSIONS = 30
const CALLS = 1_000

export class RuleAdmin {
  readonly #parts: Pick<SessionParts, 'store' | 'rules' | 'tools'>

  constructor(parts: Pick<SessionParts, 'store' | 'rules' | 'tools'>) {
    this.#parts = parts
  }

  /** Throws what the book throws: `bad_request`, `forbidden`, `not_found`, `too_large`. */
  async answer(
    userId: string,
    ask: RulesAsk,
    signal: AbortSignal,
  ): Promise<RuleList | Rule | RulePreview | object> {
    const { rules } = this.#parts
    switch (ask.do) {
      case 'list': {
        const { deployment, remember } = rules
        return { rules: await rules.list(userId), deployment: [...deployment], remember }
      }
      case 'add':
        return rules.add(userId, ask.rule)
      case 'revoke':
        await rules.revoke(userId, ask.id)
        return {}
      case 'preview':
        return this.#preview(userId, ask.rule, signal)
    }
  }

  async #preview(userId: string, { effect, match }: NewRule, signal: AbortSignal): Promise<RulePreview> {
    const problem = matchProblem(match)
    if (problem !== undefined) throw new SandlotError('bad_request', `This rule ${problem}.`)
    const candidate: Rule = { ...this.#parts.rules.make(effect, match), origin: 'user' }
    const calls = await this.#latestCalls(userId, signal)
    const judged = await preview(candidate, calls, await this.#parts.rules.of(userId))
    const changed = judged
      .filter(({ before, after }) => before !== after)
      .toSorted((a, b) => b.call.at - a.call.at)
      .map(({ call, before, after }) => {
        const { sessionId, toolCallId, title, at } = call
        return { sessionId, toolCallId, title, at, before, after }
      })
    return { looked: calls.length, changed: changed.slice(0, MAX_PREVIEWED), changedCount: changed.length }
  }

  async #latestCalls(userId: string, signal: AbortSignal): Promise<PastCall[]> {
    const { store, tools } = this.#parts
    const registry = await tools(userId, signal)
    const calls: PastCall[] = []
    for (const { id, mode } of await store.listSessions(userId, { limit: SESSIONS })) {
      if (calls.length >= CALLS) break
      const events = await store.readEvents(id)
      calls.push(...pastCalls(id, events, mode, (name) => registry.getTool(name)))
    }
    return calls.slice(0, CALLS)
  }
}

// ── The preview of a rule ───────────────────────────────────────────────────────────────────────

interface PastCall {
  sessionId: string
  toolCallId: string
  title: string
  /** Epoch milliseconds. */
  at: number
  mode: Mode
  request: CallRequest
}

/**
 * The calls of a log that could be judged: of tools that there are still, with arguments that they
 * take. `mode`: the session's now; what it was before the first change of it is not in the log, so
 * that stands in for it.
 */
function pastCalls(
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

interface Previewed {
  call: PastCall
  before: Verdict
  after: Verdict
}

/** Each call as the rules judge it now, and as they would with `candidate` among them. */
async function preview(
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
