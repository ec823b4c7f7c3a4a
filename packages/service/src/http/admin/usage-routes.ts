/**
 * Usage: one's own at `/api/usage`, everybody's at `/api/admin/usage` for administrators. Read from
 * the agent's database; the agent itself reports remaining limits.
 */
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import { csvOf } from '@sandlot/shared/admin/csv'
import {
  type AdminUsageView,
  type Budget,
  type BudgetList,
  type CountedTool,
  type CountedUsage,
  type UsageGroup,
  type UsageView,
  adminUsageQuery,
  budgetList,
  usageQuery,
} from '@sandlot/shared/admin/usage'
import { DAY_MS, type KeyValues, type UsageReads, dayOf } from '@sandlot/storage/usage/usage-sums'
import type { z } from 'zod'
import { agentUserOf } from '../../auth/agent-user.ts'
import { problemsOf } from '../../socket/frame.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

const DEFAULT_DAYS = 30
/** A page and a download have at most so many days. */
const MOST_DAYS = 3_660

/** `/api/usage` */
export function usageHandlers(parts: Parts) {
  return {
    getUsage: async (c) => {
      const { model, ...asked } = readQuery(c, usageQuery)
      const days = rangeOf(asked)
      const { usage } = await parts.sessions.reader()
      const own = { ...days, userId: c.var.caller.account.id, model }
      const [[total], byDay, byModel, budgets] = await Promise.all([
        usage.sums(own, []),
        usage.sums(own, ['day']),
        usage.sums({ ...own, model: undefined }, ['model']),
        budgetsOf(parts, c).catch(() => null),
      ])
      return c.json({
        ...wordsOf(days),
        total: total ?? NOTHING,
        days: inDays(byDay),
        models: mostFirst(byModel).map(({ model: name = '', ...sums }) => ({ model: name, ...sums })),
        budgets,
      } satisfies UsageView)
    },
    listBudgets: async (c) => c.json({ budgets: await budgetsOf(parts, c) } satisfies BudgetList),
  } satisfies Partial<Handlers>
}

/** `/api/admin/usage` */
export function adminUsageHandlers(parts: Parts) {
  return {
    getUsageOfAll: async (c) => {
      const { by, format, ...asked } = readQuery(c, adminUsageQuery)
      const days = rangeOf(asked)
      const { usage } = await parts.sessions.reader()
      const named = await namesOf(parts, by)
      const accepted = c.req.header('accept') ?? ''
      if (format === 'csv' || (format === undefined && /\btext\/csv\b/.test(accepted))) {
        const { from, to } = wordsOf(days)
        c.header('content-type', 'text/csv; charset=utf-8')
        c.header('content-disposition', `attachment; filename="sandlot-usage-by-${by}-${from}-${to}.csv"`)
        return c.body(await csvBy(usage, days, by, named))
      }
      return c.json(await viewBy(usage, days, by, named))
    },
  } satisfies Partial<Handlers>
}

async function viewBy(
  usage: UsageReads,
  days: Days,
  by: UsageGroup,
  named: (id: string | null) => Subject,
): Promise<AdminUsageView> {
  if (by === 'tool') {
    const all = [usage.tools(days, []), usage.tools(days, ['day']), usage.tools(days, [by])] as const
    const [[total], byDay, rows] = await Promise.all(all)
    return {
      by,
      ...wordsOf(days),
      total: total ?? NO_CALLS,
      days: inDays(byDay),
      rows: rows
        .toSorted((a, b) => b.calls - a.calls)
        .map(({ tool = '', ...sums }) => ({ ...named(tool), ...sums })),
    }
  }
  const all = [usage.sums(days, []), usage.sums(days, ['day']), usage.sums(days, [by])] as const
  const [[total], byDay, rows] = await Promise.all(all)
  return {
    by,
    ...wordsOf(days),
    total: total ?? NOTHING,
    days: inDays(byDay),
    // One of the three.
    rows: mostFirst(rows).map(({ person, team, model, ...sums }) => ({
      ...named(person ?? team ?? model ?? null),
      ...sums,
    })),
  }
}

/** A line for each day and subject: what a spreadsheet can sum in its own way. */
async function csvBy(
  usage: UsageReads,
  days: Days,
  by: UsageGroup,
  named: (id: string | null) => Subject,
): Promise<string> {
  const whose = by === 'person' ? ['person', 'email'] : [by]
  const cells = (row: KeyValues): (string | number | null)[] => {
    const { name, email = '' } = named(idIn(row, by))
    return [wordOf(row.day ?? 0), name, ...(by === 'person' ? [email] : [])]
  }
  const inOrder = <Row extends KeyValues>(rows: readonly Row[]): Row[] =>
    rows.toSorted((a, b) => (a.day ?? 0) - (b.day ?? 0))
  if (by === 'tool') {
    const rows = inOrder(await usage.tools(days, ['day', by]))
    const names = ['calls', 'failed', 'run_ms', 'wait_ms', 'output_bytes']
    return csvOf([
      ['day', ...whose, ...names],
      ...rows.map((row) => [...cells(row), row.calls, row.failed, row.runMs, row.waitMs, row.outputBytes]),
    ])
  }
  const rows = inOrder(await usage.sums(days, ['day', by]))
  const names = ['answers', 'calls', 'input', 'output', 'cached', 'reasoning', 'cost_usd', 'unpriced']
  return csvOf([
    ['day', ...whose, ...names],
    ...rows.map((row) => [
      ...cells(row),
      row.answers,
      row.calls,
      row.input,
      row.output,
      row.cached,
      row.reasoning,
      row.cost,
      row.unpriced,
    ]),
  ])
}

interface Subject {
  id: string | null
  name: string
  email?: string
}

/** People and teams by their names; those who are gone as well as they are still known. */
async function namesOf({ accounts }: Parts, by: UsageGroup): Promise<(id: string | null) => Subject> {
  if (by === 'team') {
    const teams = new Map((await accounts.teams.list()).map(({ id, name }) => [id, name]))
    return (id) => ({ id, name: id === null ? 'No team' : (teams.get(id) ?? 'A team that is gone') })
  }
  if (by === 'person') {
    const [users, removed] = await Promise.all([accounts.users.list(), accounts.removals.list()])
    const people = new Map([...removed, ...users].map((person) => [person.id, person]))
    return (id) => {
      const { name, email } = people.get(id ?? '') ?? { name: 'A person who is gone', email: undefined }
      return { id, name, email }
    }
  }
  return (id) => ({ id, name: id ?? '' })
}

function idIn({ person, team, model, tool }: KeyValues, by: UsageGroup): string | null {
  return { person, team, model, tool }[by] ?? null
}

/** The caller's limits, as the agent applies them. */
async function budgetsOf({ agent }: Parts, c: Ctx): Promise<Budget[]> {
  const user = agentUserOf(c.var.caller)
  return budgetList.parse(await agent.request(EXT.budgets, { user })).budgets
}

const NOTHING: CountedUsage = {
  answers: 0,
  calls: 0,
  input: 0,
  output: 0,
  cached: 0,
  cachedShare: null,
  reasoning: 0,
  cost: 0,
  unpriced: 0,
}
const NO_CALLS: CountedTool = { calls: 0, failed: 0, runMs: 0, waitMs: 0, outputBytes: 0 }

interface Days {
  from: number
  to: number
}

/** Throws `bad_request`. */
function rangeOf(asked: { from?: string | undefined; to?: string | undefined }): Days {
  const to = asked.to === undefined ? dayOf(Date.now()) : dayOf(Date.parse(asked.to))
  const from = asked.from === undefined ? to - DEFAULT_DAYS + 1 : dayOf(Date.parse(asked.from))
  if (from > to) throw new SandlotError('bad_request', 'The first day, from, is behind the last one, to.')
  if (to - from >= MOST_DAYS)
    throw new SandlotError('bad_request', `There are at most ${MOST_DAYS} days in one answer.`)
  return { from, to }
}

function wordsOf({ from, to }: Days): { from: string; to: string } {
  return { from: wordOf(from), to: wordOf(to) }
}

/** `2026-11-27` */
function wordOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10)
}

function inDays<Sums>(rows: readonly (Sums & KeyValues)[]) {
  return rows
    .toSorted((a, b) => (a.day ?? 0) - (b.day ?? 0))
    .map(({ day = 0, ...sums }) => ({ ...sums, day: wordOf(day) }))
}

function mostFirst<Row extends CountedUsage>(rows: readonly Row[]): Row[] {
  return rows.toSorted((a, b) => b.input + b.output - (a.input + a.output))
}

function readQuery<S extends z.ZodType>(c: Ctx, shape: S): z.output<S> {
  const parsed = shape.safeParse(c.req.query())
  if (!parsed.success) throw new SandlotError('bad_request', problemsOf(parsed.error))
  return parsed.data
}
