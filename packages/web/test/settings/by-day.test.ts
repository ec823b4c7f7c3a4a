import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import type { UsageView } from '@sandlot/shared/admin/usage'
import { ByDay } from '../../src/settings/usage/by-day.tsx'
import { USAGE_MEASURES } from '../../src/settings/usage/measures.ts'

test.each([
  ['Cost', 0.25],
  ['Tokens in', null],
])('by day, the first measure with a known value is shown: %s', (name, cost) => {
  const tokens = { input: 4_000, output: 60, cached: 0, cachedShare: null, reasoning: 0 }
  const counted = { ...tokens, answers: 2, calls: 1, unpriced: 0 }
  const day = '2026-11-02'
  const markup = renderToStaticMarkup(
    createElement(ByDay<UsageView['days'][number]>, {
      days: { from: day, to: day },
      rows: [{ day, cost, ...counted }],
      measures: USAGE_MEASURES,
    }),
  )
  expect(/<option[^>]* selected=""[^>]*>([^<]*)/.exec(markup)?.[1]).toBe(name)
})
