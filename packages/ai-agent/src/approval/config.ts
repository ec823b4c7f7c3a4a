/**
 * Section `rules` of the configuration file: calls denied, asked about or allowed for all users,
 * the answers that may be remembered and for how long, and whether the agent may ask for hosts.
 */
import { type Rule, type RuleMatch, RULE_EFFECTS, ruleMatch } from '@sandlot/shared/chat/rules'
import { z } from 'zod'
import { matchProblem } from './match.ts'
import type { Remembering } from './options.ts'

const matches = z
  .array(
    ruleMatch.superRefine((match, ctx) => {
      const problem = matchProblem(match)
      if (problem !== undefined) ctx.addIssue({ code: 'custom', message: problem })
    }),
  )
  .default([])

export const rulesSection = z.strictObject({
  /** Always denied, in every mode. */
  deny: matches,
  /** Always ask, in every mode, whatever was remembered. */
  ask: matches,
  /** For everybody, without asking. */
  allow: matches,
  /** The longest time for which people may have an answer remembered. */
  remember: z.enum(['never', 'session', 'always']).default('always'),
  /**
   * `listed`: sandboxes reach the hosts of `SANDLOT_EGRESS_ALLOW`. `ask`: the agent may ask the
   * user for more.
   */
  hosts: z.enum(['listed', 'ask']).default('listed'),
  /** Days after which a remembered rule is asked for again. Absent: never. */
  expireDays: z.int().min(1).max(3_650).optional(),
})
type RulesSection = z.output<typeof rulesSection>

export interface RuleSettings {
  /** Everybody's. */
  deployment: readonly Rule[]
  remember: Remembering
  /** Milliseconds that a remembered rule lasts. */
  lastMs: number | undefined
}

const DAY_MS = 86_400_000

export function ruleSettings(section: RulesSection | undefined): RuleSettings {
  const deployment = RULE_EFFECTS.flatMap((effect) =>
    (section?.[effect] ?? []).map((match: RuleMatch, at): Rule => ({
      id: `deployment:${effect}:${at + 1}`,
      effect,
      match,
      origin: 'deployment',
      createdAt: 0,
    })),
  )
  const days = section?.expireDays
  return {
    deployment,
    remember: section?.remember ?? 'always',
    lastMs: days === undefined ? undefined : days * DAY_MS,
  }
}
