/**
 * Settings of budgets for everybody, from the environment; the section `limits` of the
 * configuration file is read once (`settingsSeeds`).
 */
import type { SettingValues } from '@sandlot/shared/config/settings'
import {
  type AgentLimits,
  type TeamLimits,
  agentLimits,
  LIMIT_NAMES,
} from '@sandlot/shared/account/agent-settings'
import { z } from 'zod'
import { byPerson } from '../people/person-key.ts'
import type { Budgets } from './budgets.ts'
import type { BudgetsTogether, Period, PeriodBudgets } from './period-budgets.ts'

/** The section `limits`. `users`: by user id or e-mail address. */
export const limitsSection = z.strictObject({ users: byPerson(agentLimits).optional() })

export interface PromptLimits {
  maxTurns: number
  budgets: Budgets
}

export interface LimitSettings {
  everybody: PromptLimits
  /** The written settings: for everybody, and by user id or e-mail address. */
  written: { everybody: Required<AgentLimits>; users: ReadonlyMap<string, AgentLimits> }
  /** Limits of everybody together. */
  total: TeamLimits
  /** People are warned when this share of a limit of a day or a month is used up; 0: never. */
  warnAt: number
}

const NO_LIMITS = Object.fromEntries(LIMIT_NAMES.map((name) => [name, 0])) as Required<AgentLimits>

export function readBudgets(
  read: SettingValues<'ai-agent'>,
  section: z.output<typeof limitsSection> | undefined,
): LimitSettings {
  const all = {
    ...NO_LIMITS,
    turns: read.SANDLOT_MAX_TURNS,
    cost: read.SANDLOT_MAX_COST,
    promptSeconds: read.SANDLOT_MAX_PROMPT_SECONDS,
    tokensPerDay: read.SANDLOT_MAX_TOKENS_PER_DAY,
    costPerDay: read.SANDLOT_MAX_COST_PER_DAY,
    tokensPerMonth: read.SANDLOT_MAX_TOKENS_PER_MONTH,
    costPerMonth: read.SANDLOT_MAX_COST_PER_MONTH,
  }
  const total = {
    tokensPerDay: read.SANDLOT_TOTAL_TOKENS_PER_DAY,
    costPerDay: read.SANDLOT_TOTAL_COST_PER_DAY,
    tokensPerMonth: read.SANDLOT_TOTAL_TOKENS_PER_MONTH,
    costPerMonth: read.SANDLOT_TOTAL_COST_PER_MONTH,
  }
  const users = new Map(Object.entries(section?.users ?? {}))
  return {
    everybody: promptLimits(all),
    written: { everybody: all, users },
    total,
    warnAt: read.SANDLOT_BUDGET_WARNING / 100,
  }
}

/** Limits of a prompt. `together`: limits of the teams of the user, and of the deployment. */
export function promptLimits(
  set: AgentLimits,
  together: readonly { of: BudgetsTogether['of']; limits: TeamLimits }[] = [],
): PromptLimits {
  const { calls, tokens, cost } = set
  const shared = together.flatMap(({ of, limits }): BudgetsTogether[] => {
    const periods = lastingOf(limits)
    return Object.keys(periods).length === 0 ? [] : [{ of, ...periods }]
  })
  return {
    maxTurns: set.turns ?? 100,
    budgets: {
      ...limited({ calls, tokens, cost, promptMs: (set.promptSeconds ?? 0) * 1_000 }),
      ...lastingOf(set),
      ...(shared.length === 0 ? {} : { together: shared }),
    },
  }
}

/** Without a day or a month of which nothing is set. */
function lastingOf(set: TeamLimits): Partial<Record<Period, PeriodBudgets>> {
  const limits = (per: 'Day' | 'Month'): PeriodBudgets =>
    limited({
      turns: set[`turnsPer${per}`],
      calls: set[`callsPer${per}`],
      tokens: set[`tokensPer${per}`],
      cost: set[`costPer${per}`],
      ms: (set[`secondsPer${per}`] ?? 0) * 1_000,
    })
  const all = Object.entries({ day: limits('Day'), month: limits('Month') })
  return Object.fromEntries(all.filter(([, limits]) => Object.keys(limits).length > 0))
}

/** Without those that are not set, and those that are 0. */
function limited<Name extends string>(
  written: Record<Name, number | undefined>,
): Partial<Record<Name, number>> {
  const set = Object.entries<number | undefined>(written).filter(([, limit = 0]) => limit > 0)
  return Object.fromEntries(set) as Partial<Record<Name, number>>
}

/** True when one of them is in dollars, which means nothing for a model without a price. */
export function limitsCost(...all: readonly (AgentLimits | TeamLimits | undefined)[]): boolean {
  return all.some((limits) =>
    Object.entries(limits ?? {}).some(([name, limit]) => name.startsWith('cost') && limit > 0),
  )
}
