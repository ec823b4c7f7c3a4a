/**
 * People's own rules over the wire: the bodies of `/api/rules`, and what the service asks ai-agent
 * by `_sandlot/rules`.
 */
import { z } from 'zod'
import { agentUser } from './agent-user.ts'
import { rule, ruleEffect, ruleMatch, verdict } from '../chat/rules.ts'

/** `POST /api/rules` → 201 with the `Rule`. */
export const newRule = z.strictObject({
  effect: ruleEffect,
  match: ruleMatch,
  /** Epoch milliseconds. Absent: as long as the deployment lets it. */
  expiresAt: z.int().positive().optional(),
})
export type NewRule = z.infer<typeof newRule>

/** `GET /api/rules`. `DELETE /api/rules/:id` → 204. */
export const ruleList = z.object({
  /** One's own, in the order in which they were made. */
  rules: z.array(rule),
  /** Everybody's. */
  deployment: z.array(rule),
  /** How long answers may be remembered here. */
  remember: z.enum(['never', 'session', 'always']),
})
export type RuleList = z.infer<typeof ruleList>

/**
 * `POST /api/rules/preview` with a `NewRule`: what it would have answered to the latest calls of
 * one's own sessions.
 */
export const rulePreview = z.object({
  /** How many calls were looked at. */
  looked: z.int(),
  /** Those whose verdict would have been another one, newest first, at most `MAX_PREVIEWED`. */
  changed: z.array(
    z.object({
      sessionId: z.string(),
      toolCallId: z.string(),
      title: z.string(),
      /** Epoch milliseconds. */
      at: z.number(),
      before: verdict,
      after: verdict,
    }),
  ),
  /** How many there are in all. */
  changedCount: z.int(),
})
export type RulePreview = z.infer<typeof rulePreview>
export const MAX_PREVIEWED = 50

/**
 * `GET /api/rules/asked`: how often one was asked in the last days, and which rules of one's own
 * would have answered, those that answer most first, at most `MAX_SAVING`. Only what was never
 * denied is proposed.
 */
export const askedReport = z.object({
  days: z.int(),
  asked: z.int(),
  saving: z.array(
    z.object({
      match: ruleMatch,
      /** How often it would have answered. */
      times: z.int(),
      /** The call that asked last. */
      title: z.string(),
    }),
  ),
})
export type AskedReport = z.infer<typeof askedReport>
export const MAX_SAVING = 5

/** `_sandlot/rules`: answered with `RuleList`, `Rule`, `{}`, `RulePreview` or `AskedReport`. */
export const rulesParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('list') }),
    z.object({ do: z.literal('add'), rule: newRule }),
    z.object({ do: z.literal('revoke'), id: z.string().max(200) }),
    z.object({ do: z.literal('preview'), rule: newRule }),
    z.object({ do: z.literal('asked') }),
  ]),
})
export type RulesAsk = z.infer<typeof rulesParams>['ask']
