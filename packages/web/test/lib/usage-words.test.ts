/** Usage as text. */
import type { Budget } from '@sandlot/shared/admin/usage'
import { expect, test } from 'vitest'
import {
  againWords,
  budgetName,
  budgetUse,
  cachedWords,
  costWords,
  dollarWords,
  percentUsed,
  spentLine,
  spentRows,
  tokenWords,
} from '../../src/lib/usage-text.ts'

const spent = {
  answers: 2,
  input: 11_200,
  output: 820,
  cached: 9_000,
  reasoning: 0,
  known: 0.04,
  unpriced: 0,
}

test('tokens and dollars are short, and small amounts are not nothing', () => {
  expect([0, 999, 1_000, 9_949, 52_300, 999_600, 3_140_000, 2e9].map(tokenWords)).toEqual([
    '0',
    '999',
    '1.0 k',
    '9.9 k',
    '52 k',
    '1.0 M',
    '3.1 M',
    '2.0 G',
  ])
  expect([0, 0.0004, 0.42, 1_204].map(dollarWords)).toEqual(['$0.00', '$0.0004', '$0.42', '$1,204.00'])
})

test('unknown cost is unknown, never zero', () => {
  expect(costWords({ cost: null, unpriced: 3 })).toBe('unknown')
  expect(costWords({ cost: 0.5, unpriced: 1 })).toBe('at least $0.50')
  expect(costWords({ cost: 0, unpriced: 0 })).toBe('$0.00')
  expect(spentLine(spent, 8_200)).toBe('8.2 s · 12 k tokens · $0.04')
  expect(spentLine({ ...spent, unpriced: 2 }, undefined)).toBe('12 k tokens')
  expect(spentLine({ ...spent, unpriced: 1 }, 8_200)).toBe('8.2 s · 12 k tokens · at least $0.04')
  expect(spentRows({ ...spent, unpriced: 2 }).at(-1)).toEqual(['Cost', 'unknown: 2 answers of unknown cost'])
  expect(spentRows(spent)[0]).toEqual(['Tokens in', '11,200, 9,000 of them cached'])
})

test('the share of input read from cache is unknown where no provider counts it, and never rounded up', () => {
  expect(cachedWords({ cached: 999, cachedShare: 0.9999 })).toBe('99 % read from cache')
  expect(cachedWords({ cached: 0, cachedShare: 0 })).toBe('0 % read from cache')
  expect(cachedWords({ cached: 15_000, cachedShare: null })).toBe('15 k cached')
  expect(cachedWords({ cached: 0, cachedShare: null })).toBeUndefined()
})

test('a limit is named with whose it is, and says when it starts again', () => {
  const day: Budget = {
    of: 'you',
    name: null,
    period: 'day',
    what: 'tokens',
    limit: 1_000,
    used: 999,
    startsAgainAt: Date.UTC(2026, 10, 28),
    warns: true,
  }
  const month: Budget = { ...day, of: 'team', name: 'Data', period: 'month', what: 'cost', limit: 5, used: 7 }
  expect([budgetName(day), budgetUse(day), percentUsed(day)]).toEqual([
    'Your tokens today',
    '999 of 1.0 k',
    99,
  ])
  expect([budgetName(month), budgetUse(month), percentUsed(month)]).toEqual([
    'Cost of the team “Data” this month',
    '$7.00 of $5.00',
    100,
  ])
  expect(budgetName({ ...month, of: 'everybody' })).toBe('Cost of everybody this month')
  expect(againWords(day)).toBe('starts again at midnight UTC')
  expect(againWords({ ...month, startsAgainAt: Date.UTC(2026, 11, 1) })).toBe(
    'starts again on 1 December at midnight UTC',
  )
})
