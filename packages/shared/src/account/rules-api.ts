/** A user's own rules on the wire: the bodies of `/api/rules` and of `_sandlot/rules`. */
import { z } from 'zod'
import { agentUser } from './agent-user.ts'
import { rule, ruleEffect, ruleMatch, verdict } from '../chat/rules.ts'

/** `POST /api/rules` → 201 with the `Rule`. */
export const newRule = z.strictObject({
  effect: ruleEffect,
  match: ruleMatch,
  /** Epoch milliseconds. Absent: the longest that the deployment permits. */
  expiresAt: z.int().positive().optional(),
})
export type NewRule = z.infer<typeof newRule>

/** `GET /api/rules`. `DELETE /api/rules/:id` → 204. */
export const ruleList = z.object({
  /** The user's own, oldest first. */
  rules: z.array(rule),
  /** For everyone. */
  deployment: z.array(rule),
  /** The longest time that answers may be remembered here. */
  remember: z.enum(['never', 'session', 'always']),
})
export type RuleList = z.infer<typeof ruleList>

/**
 * `POST /api/rules/preview` with a `NewRule`: its answers to the latest calls of the user's
 * sessions.
 */
export const rulePreview = z.object({
  /** Number of compared calls. */
  looked: z.int(),
  /** Calls with another verdict, newest first, at most `MAX_PREVIEWED`. */
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
  /** Their total number. */
  changedCount: z.int(),
})
export type RulePreview = z.infer<typeof rulePreview>
export const MAX_PREVIEWED = 50

/**
 * `GET /api/rules/asked`: the number of approvals in the last days, and own rules that would have
 * answered, the most effective first, at most `MAX_SAVING`. Calls that were ever denied are not
 * proposed.
 */
export const askedReport = z.object({
  days: z.int(),
  asked: z.int(),
  saving: z.array(
    z.object({
      match: ruleMatch,
      /** Number of approvals that it would have answered. */
      times: z.int(),
      /** The last such call. */
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
