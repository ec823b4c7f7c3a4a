/**
 * Usage for pages and programs: `GET /api/usage` (own) and `GET /api/admin/usage`. Days are UTC,
 * like limits. Unknown cost is null, never zero.
 */
import { z } from 'zod'

const count = z.int().nonnegative()

/** A sum of model answers. */
const countedUsage = z.object({
  answers: count,
  /** Their calls, including refused ones. */
  calls: count,
  /** Reported tokens. `cached` is part of `input`, `reasoning` of `output`. */
  input: count,
  output: count,
  cached: count,
  /** Share of input that was cached, where providers count that; null: known of no answer. */
  cachedShare: z.number().min(0).max(1).nullable(),
  reasoning: count,
  /** US dollars of the answers with known cost; null: no cost is known. */
  cost: z.number().nonnegative().nullable(),
  /** Answers of unknown cost. */
  unpriced: count,
})
export type CountedUsage = z.infer<typeof countedUsage>

/** A sum of ended calls of a tool. */
const countedTool = z.object({
  calls: count,
  failed: count,
  runMs: count,
  /** For approvals and in queues. */
  waitMs: count,
  /** Bytes, including unstored ones. */
  outputBytes: count,
})
export type CountedTool = z.infer<typeof countedTool>

/** A daily or monthly limit with its usage. */
const budget = z.object({
  /** `team`: all members of a team together. */
  of: z.enum(['you', 'team', 'everybody']),
  /** The team’s. */
  name: z.string().nullable(),
  period: z.enum(['day', 'month']),
  /** `turns`: model answers. `tokens`: in and out. `cost`: US dollars. `ms`: running time. */
  what: z.enum(['turns', 'calls', 'tokens', 'cost', 'ms']),
  limit: z.number().positive(),
  used: z.number().nonnegative(),
  /** Epoch milliseconds. */
  startsAgainAt: z.number(),
  /** The operator's warning threshold is reached. */
  warns: z.boolean(),
})
export type Budget = z.infer<typeof budget>

/** `GET /api/usage/budgets`: limits of the caller. Empty: none. */
export const budgetList = z.object({ budgets: z.array(budget) })
export type BudgetList = z.infer<typeof budgetList>

const date = z.iso.date('must be a day like 2026-11-27')
/** Days, inclusive. Default: the last 30 until today. */
const range = { from: date.optional(), to: date.optional() }

/** The query of `GET /api/usage`. */
export const usageQuery = z.strictObject({
  ...range,
  /** Only answers of this model. */
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
  /** Null: not known while the agent is unavailable. */
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

/** The subject of a row. */
const subject = z.object({
  /** Null: people without a team. */
  id: z.string().nullable(),
  name: z.string(),
  /** A person's address. */
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
