/**
 * What an operator can set about budgets: the same for everybody by the environment, and for single
 * people in the section `limits` of the configuration file, which wins.
 */
import { wholeNumber } from '@sandlot/shared/config'
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

const amount = z.number().nonnegative()
const count = z.int().nonnegative()

/** Of one person. What is absent is as for everybody; 0 is no limit. */
const personLimits = z.strictObject({
  turns: z.int().min(1).max(1_000).optional(),
  calls: count.optional(),
  tokens: count.optional(),
  cost: amount.optional(),
  promptSeconds: count.optional(),
  turnsPerDay: count.optional(),
  callsPerDay: count.optional(),
  tokensPerDay: count.optional(),
  costPerDay: amount.optional(),
  secondsPerDay: count.optional(),
})

/** The section `limits`. `users`: by user id or e-mail address. */
export const limitsSection = z.strictObject({ users: byPerson(personLimits).optional() })

interface PromptLimits {
  maxTurns: number
  budgets: Budgets
}

type Written = z.output<typeof personLimits>

export interface LimitSettings {
  everybody: PromptLimits
  /** As they were written: for everybody, and by user id or e-mail address. */
  written: { everybody: Written; users: ReadonlyMap<string, Written> }
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

/**
 * What holds for one person, each limit by itself: what stands under the id, else under the
 * address, else everybody's.
 */
export function limitsFor(
  { written: { everybody, users } }: LimitSettings,
  userId: string,
  email: string | undefined,
): PromptLimits {
  const byAddress = email === undefined ? undefined : users.get(email)
  return promptLimits({ ...everybody, ...byAddress, ...users.get(userId) })
}

function promptLimits(set: Written): PromptLimits {
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

/** True when any user has a limit in dollars, which means nothing for a model without a price. */
export function limitsCost({ written: { everybody, users } }: LimitSettings): boolean {
  return [everybody, ...users.values()].some(({ cost = 0, costPerDay = 0 }) => cost > 0 || costPerDay > 0)
}
