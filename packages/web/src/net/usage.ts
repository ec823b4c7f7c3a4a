/** Requests about usage. Failures are `ApiError`s. */
import {
  type AdminUsageView,
  type Budget,
  type UsageGroup,
  type UsageView,
  adminUsageView,
  budgetList,
  usageView,
} from '@sandlot/shared/admin/usage'
import { call } from './http.ts'

/** Days like `2026-11-27`, both in it. */
export interface Days {
  from: string
  to: string
}

/** One’s own. */
export function fetchUsage(days: Days, model: string | null): Promise<UsageView> {
  const of = model === null ? '' : `&model=${encodeURIComponent(model)}`
  return call(usageView, 'GET', `/api/usage?${query(days)}${of}`)
}

/** One's own limits. */
export async function fetchBudgets(): Promise<Budget[]> {
  return (await call(budgetList, 'GET', '/api/usage/budgets')).budgets
}

/** Everybody's usage, for administrators. */
export function fetchAllUsage(days: Days, by: UsageGroup): Promise<AdminUsageView> {
  return call(adminUsageView, 'GET', `/api/admin/usage?${query(days)}&by=${by}`)
}

/** The address of the same as CSV. */
export function usageCsv(days: Days, by: UsageGroup): string {
  return `/api/admin/usage?${query(days)}&by=${by}&format=csv`
}

function query({ from, to }: Days): string {
  return `from=${from}&to=${to}`
}
