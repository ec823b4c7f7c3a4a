/** People's own rules: list, create, revoke, and try one on past calls. */
import { SandlotError } from '@sandlot/shared/base/errors'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Rule } from '@sandlot/shared/chat/rules'
import {
  type AskedReport,
  MAX_PREVIEWED,
  MAX_SAVING,
  type NewRule,
  type RuleList,
  type RulePreview,
  type RulesAsk,
} from '@sandlot/shared/account/rules-api'
import { type CallRequest, callRequest } from '../approval/request.ts'
import { holdNumbers, isZodInput } from '../tools/tool-schema.ts'
import type { Tool } from '../tools/tool.ts'
import { folderOfChat, inFolder } from '../tools/workspace-path.ts'
import type { SessionParts } from './parts.ts'
import { matchProblem } from '../approval/match.ts'
import { type PastCall, pastCalls, preview, savingRules } from '../approval/preview.ts'
import type { SessionEvent } from '@sandlot/shared/chat/events'

/** The number of sessions in a preview. */
const SESSIONS = 30
const CALLS = 1_000
/** Days for which questions are counted. */
const DAYS = 30
const DAY_MS = 86_400_000

export class RuleAdmin {
  readonly #parts: Pick<SessionParts, 'store' | 'calls' | 'now'>

  constructor(parts: Pick<SessionParts, 'store' | 'calls' | 'now'>) {
    this.#parts = parts
  }

  /** Throws what the book throws: `bad_request`, `forbidden`, `not_found`, `too_large`. */
  async answer(
    userId: string,
    ask: RulesAsk,
    signal: AbortSignal,
    actor?: Pick<NewAudit, 'who' | 'from'>,
  ): Promise<RuleList | Rule | RulePreview | AskedReport | object> {
    const { rules } = this.#parts.calls
    switch (ask.do) {
      case 'list': {
        const deployment = [...rules.configured, ...(await rules.everybodys())]
        return { rules: await rules.list(userId), deployment, remember: rules.remember }
      }
      case 'add':
        return rules.add(
          userId,
          ask.rule,
          actor &&
            (({ id, effect, match, expiresAt }) => ({
              ...actor,
              what: 'rule_made',
              whom: { id },
              after: { effect, match, expiresAt },
            })),
        )
      case 'revoke':
        await rules.revoke(userId, ask.id, actor && { ...actor, what: 'rule_revoked', whom: { id: ask.id } })
        return {}
      case 'preview':
        return this.#preview(userId, ask.rule, signal)
      case 'asked':
        return this.#asked(userId)
    }
  }

  async #preview(userId: string, { effect, match }: NewRule, signal: AbortSignal): Promise<RulePreview> {
    const problem = matchProblem(match)
    if (problem !== undefined) throw new SandlotError('bad_request', `This rule ${problem}.`)
    const candidate: Rule = { ...this.#parts.calls.rules.make(effect, match), origin: 'user' }
    const calls = await this.#latestCalls(userId, signal)
    const rules = await this.#parts.calls.rules.of(userId)
    const { externalAccess } = this.#parts.calls
    const judged = await preview(candidate, calls, rules, (sessionId) => ({
      externalAccess: externalAccess(sessionId, userId, rules),
    }))
    const changed = judged
      .filter(({ before, after }) => before !== after)
      .toSorted((a, b) => b.call.at - a.call.at)
      .map(({ call, before, after }) => {
        const { sessionId, toolCallId, title, at } = call
        return { sessionId, toolCallId, title, at, before, after }
      })
    return { looked: calls.length, changed: changed.slice(0, MAX_PREVIEWED), changedCount: changed.length }
  }

  async #asked(userId: string): Promise<AskedReport> {
    const { store, calls, now } = this.#parts
    const { rules } = calls
    const since = now() - DAYS * DAY_MS
    const sessions = await store.approvals.asksSince(userId, since)
    const logs: SessionEvent[][] = []
    for (const { sessionId } of sessions.slice(0, SESSIONS)) logs.push(await store.log.read(sessionId))
    const { questions, saving } = savingRules(logs, since, await rules.list(userId))
    const asked = sessions.reduce((sum, { asks }) => sum + asks, 0) - questions
    return { days: DAYS, asked, saving: rules.remember === 'always' ? saving.slice(0, MAX_SAVING) : [] }
  }

  async #latestCalls(userId: string, signal: AbortSignal): Promise<PastCall[]> {
    const { store, calls: callParts } = this.#parts
    const registry = await callParts.tools(userId, signal)
    const requestOf = (cwd: string, name: string, raw: unknown): CallRequest | undefined => {
      const folder = folderOfChat(cwd)
      const known = registry.getTool(name)
      const tool = known === undefined || folder === undefined ? known : inFolder(known, folder)
      const args = tool === undefined ? undefined : pastArguments(tool, raw)
      return tool === undefined || args === undefined ? undefined : callRequest({ tool, args })
    }
    const calls: PastCall[] = []
    for (const { id, mode, cwd } of await store.sessions.list(userId, { limit: SESSIONS })) {
      if (calls.length >= CALLS) break
      const events = await store.log.read(id)
      calls.push(...pastCalls(id, events, mode, (name, raw) => requestOf(cwd, name, raw)))
    }
    return calls.slice(0, CALLS)
  }
}

/**
 * Undefined where our own tool does not take them. Against the schema of a server the calls of the
 * past are not checked again: that was done when they were made, and may take long.
 */
function pastArguments({ input }: Tool, raw: unknown): Record<string, unknown> | undefined {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return undefined
  const held = holdNumbers(input, { ...raw })
  if ('problems' in held) return undefined
  return isZodInput(input) ? input.safeParse(held.args).data : held.args
}
