/**
 * What an operator can set about budgets for everybody by the environment; the section `limits` of
 * the configuration file is read once (`settingsSeeds`).
 */
import { wholeNumber } from '@sandlot/shared/config'
import { type AgentLimits, agentLimits } from '@sandlot/shared/team/agent-settings'
import { z } from 'zod'
import { byPerson } from '../people/person-key.ts'
import type { Budgets } from './budgets.ts'

const dollars = z
  .string()
  .regex(/^\d+(\.\d+)?$/, 'must be an amount like 5 or 0.50')
  .transform(Number)

/** 0: no limit. */
export const budgetVariables = {
  SANDLOT_MAX_TURNS: wholeNumber(1, 1_000).default(100),
  SANDLOT_MAX_CALLS: wholeNumber(0, 1_000_000).default(0),
  SANDLOT_MAX_TOKENS: wholeNumber(0, 10 ** 12).default(0),
  SANDLOT_MAX_COST: dollars.default(0),
  SANDLOT_MAX_PROMPT_SECONDS: wholeNumber(0, 30 * 86_400).default(0),
  SANDLOT_MAX_TURNS_PER_DAY: wholeNumber(0, 1_000_000).default(0),
  SANDLOT_MAX_CALLS_PER_DAY: wholeNumber(0, 1_000_000).default(0),
  SANDLOT_MAX_TOKENS_PER_DAY: wholeNumber(0, 10 ** 12).default(0),
  SANDLOT_MAX_COST_PER_DAY: dollars.default(0),
  SANDLOT_MAX_SECONDS_PER_DAY: wholeNumber(0, 30 * 86_400).default(0),
}
const parsed = z.object(budgetVariables)

/** The section `limits`. `users`: by user id or e-mail address. */
export const limitsSection = z.strictObject({ users: byPerson(agentLimits).optional() })

interface PromptLimits {
  maxTurns: number
  budgets: Budgets
}

export interface LimitSettings {
  everybody: PromptLimits
  /** As they were written: for everybody, and by user id or e-mail address. */
  written: { everybody: Required<AgentLimits>; users: ReadonlyMap<string, AgentLimits> }
}

export function readBudgets(
  read: z.output<typeof parsed>,
  section: z.output<typeof limitsSection> | undefined,
): LimitSettings {
  const all = {
    turns: read.SANDLOT_MAX_TURNS,
    calls: read.SANDLOT_MAX_CALLS,
    tokens: read.SANDLOT_MAX_TOKENS,
    cost: read.SANDLOT_MAX_COST,
    promptSeconds: read.SANDLOT_MAX_PROMPT_SECONDS,
    turnsPerDay: read.SANDLOT_MAX_TURNS_PER_DAY,
    callsPerDay: read.SANDLOT_MAX_CALLS_PER_DAY,
    tokensPerDay: read.SANDLOT_MAX_TOKENS_PER_DAY,
    costPerDay: read.SANDLOT_MAX_COST_PER_DAY,
    secondsPerDay: read.SANDLOT_MAX_SECONDS_PER_DAY,
  }
  const users = new Map(Object.entries(section?.users ?? {}))
  return { everybody: promptLimits(all), written: { everybody: all, users } }
}

/** As prompts need them. */
export function promptLimits(set: AgentLimits): PromptLimits {
  const { calls, tokens, cost } = set
  const day = limited({
    turns: set.turnsPerDay,
    calls: set.callsPerDay,
    tokens: set.tokensPerDay,
    cost: set.costPerDay,
    ms: (set.secondsPerDay ?? 0) * 1_000,
  })
  return {
    maxTurns: set.turns ?? 100,
    budgets: {
      ...limited({ calls, tokens, cost, promptMs: (set.promptSeconds ?? 0) * 1_000 }),
      ...(Object.keys(day).length === 0 ? {} : { day }),
    },
  }
}

/** Without those that are not set, and those that are 0. */
function limited<Name extends string>(
  written: Record<Name, number | undefined>,
): Partial<Record<Name, number>> {
  const set = Object.entries<number | undefined>(written).filter(([, limit = 0]) => limit > 0)
  return Object.fromEntries(set) as Partial<Record<Name, number>>
}

/** True when one of them is in dollars, which means nothing for a model without a price. */
export function limitsCost(...all: readonly AgentLimits[]): boolean {
  return all.some(({ cost = 0, costPerDay = 0 }) => cost > 0 || costPerDay > 0)
}
