import { afterEach, expect, test, vi } from 'vitest'

import { measureGoals } from './run.ts'
import { below, type Result } from './report.ts'

const before = process.exitCode
afterEach(() => {
  process.exitCode = before
  vi.restoreAllMocks()
})

const measured = (figure: number): Result => ({
  goal: 'G1',
  title: 'one call',
  series: [],
  verdicts: [below('p50 ≤ 3 ms', figure, 3, 'ms')],
})

test.each([
  ['a goal that is reached leaves the exit code', 2, before],
  ['a goal that is missed makes it 1', 4, 1],
])('%s', async (_, figure, exitCode) => {
  const print = vi.spyOn(console, 'log').mockReturnValue()
  await measureGoals([{ ids: ['G1'], measure: () => Promise.resolve([measured(figure)]) }], undefined)
  expect(process.exitCode).toBe(exitCode)
  expect(print).toHaveBeenCalledOnce()
})
