/** The remaining budget of a day and a month, for people. */
import type { Budget } from '@sandlot/shared/admin/usage'
import { type LastingBudgets, PERIODS, type PeriodBudgets, type Spent, endOf } from './period-budgets.ts'

/**
 * Each limit that holds, with what is used up of it. `warnAt`: the share at which it warns; 0:
 * never.
 */
export async function budgetsOf(
  budgets: LastingBudgets,
  spent: Spent,
  { now, warnAt }: { now: number; warnAt: number },
): Promise<Budget[]> {
  const each = (
    limits: PeriodBudgets,
    used: Partial<Record<Budget['what'], number>>,
    of: Pick<Budget, 'of' | 'name' | 'period'>,
  ): Budget[] =>
    (Object.keys(limits) as Budget['what'][]).flatMap((what) => {
      const limit = limits[what]
      if (limit === undefined) return []
      const amount = used[what] ?? 0
      const warns = warnAt > 0 && amount >= limit * warnAt
      return [{ ...of, what, limit, used: amount, startsAgainAt: endOf(of.period, now), warns }]
    })
  const found: Budget[] = []
  for (const period of PERIODS) {
    const own = budgets[period]
    if (own !== undefined)
      found.push(...each(own, await spent.own(period), { of: 'you', name: null, period }))
  }
  for (const { of, ...together } of budgets.together ?? [])
    for (const period of PERIODS) {
      const limits = together[period]
      if (limits === undefined) continue
      const whose =
        of.kind === 'team' ? { of: 'team' as const, name: of.name } : { of: 'everybody' as const, name: null }
      found.push(...each(limits, await spent.together(of, period, limits), { ...whose, period }))
    }
  return found
}
