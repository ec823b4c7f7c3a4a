/**
 * What was used up, as pages and programs read it: `GET /api/usage` (one's own) and
 * `GET /api/admin/usage`. Days are UTC, as limits are. Unknown cost is null, never zero.
 */
import { z } from 'zod'

const count = z.int().nonnegative()

/** A sum of answers of models. */
const countedUsage = z.object({
  answers: count,
  /** Calls that they made, also those that were refused. */
  calls: count,
  /** Tokens; of unreported ones none. `cached` is part of `input`, `reasoning` of `output`. */
  input: count,
  output: count,
  cached: count,
  reasoning: count,
  /** US dollars of the answers whose cost is known; null: of none it is. */
  cost: z.number().nonnegative().nullable(),
  /** Answers of unknown cost. */
  unpriced: count,
})
export type CountedUsage = z.infer<typeof countedUsage>

/** A sum of calls of a tool that have ended. */
const countedTool = z.object({
  calls: count,
  failed: count,
  runMs: count,
  /** For approvals and in queues. */
  waitMs: count,
  /** Bytes, also those that were not stored. */
  outputBytes: count,
})
export type CountedTool = z.infer<typeof countedTool>

/** A limit of a day or a month, and what is used up of it. */
const budget = z.object({
  /** `team`: of all of a team’s members together. */
  of: z.enum(['you', 'team', 'everybody']),
  /** Of the team. */
  name: z.string().nullable(),
  period: z.enum(['day', 'month']),
  /** `turns`: answers of models. `tokens`: in and out. `cost`: US dollars. `ms`: running time. */
  what: z.enum(['turns', 'calls', 'tokens', 'cost', 'ms']),
  limit: z.number().positive(),
  used: z.number().nonnegative(),
  /** Epoch milliseconds. */
  startsAgainAt: z.number(),
  /** The share at which the operator wants people to be warned is used up. */
  warns: z.boolean(),
})
export type Budget = z.infer<typeof budget>

/** `GET /api/usage/budgets`: what limits the caller. Empty: nothing does. */
export const budgetList = z.object({ budgets: z.array(budget) })
export type BudgetList = z.infer<typeof budgetList>

const date = z.iso.date('must be a day like 2026-11-27')
/** Days, both in it. Default: the last 30 until today. */
const range = { from: date.optional(), to: date.optional() }

/** The query of `GET /api/usage`. */
export const usageQuery = z.strictObject({
  ...range,
  /** Of answers of this model alone. */
  model: z.string().min(1).max(200).optional(),
})

const usageDay = countedUsage.extend({ day: date })
const usageModel = countedUsage.extend({ model: z.string() })

/** `GET /api/usage`. */
export const usageView = z.object({
  from: date,
  to: date,
  total: countedUsage,
  /** In order, only those with answers. */
  days: z.array(usageDay),
  /** The most tokens first. */
  models: z.array(usageModel),
  /** Null: the agent is away, so what limits is not known now. */
  budgets: z.array(budget).nullable(),
})
export type UsageView = z.infer<typeof usageView>

export const USAGE_GROUPS = ['person', 'team', 'model', 'tool'] as const
export type UsageGroup = (typeof USAGE_GROUPS)[number]

/** The query of `GET /api/admin/usage`. */
export const adminUsageQuery = z.strictObject({
  ...range,
  by: z.enum(USAGE_GROUPS).default('person'),
  format: z.enum(['json', 'csv']).optional(),
})

/** Of whom or what a row is. */
const subject = z.object({
  /** Null: of people who were in no team. */
  id: z.string().nullable(),
  name: z.string(),
  /** Of a person. */
  email: z.string().optional(),
})

/** `GET /api/admin/usage` (administrators). Rows: the most tokens, or calls, first. */
export const adminUsageView = z.discriminatedUnion('by', [
  z.object({
    by: z.enum(['person', 'team', 'model']),
    from: date,
    to: date,
    total: countedUsage,
    days: z.array(usageDay),
    rows: z.array(countedUsage.extend(subject.shape)),
  }),
  z.object({
    by: z.literal('tool'),
    from: date,
    to: date,
    total: countedTool,
    days: z.array(countedTool.extend({ day: date })),
    rows: z.array(countedTool.extend(subject.shape)),
  }),
])
export type AdminUsageView = z.infer<typeof adminUsageView>
