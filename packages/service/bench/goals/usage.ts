/** V8: what was used up, read while a million answers are counted. */
import { inTurns, p50 } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import type { BenchContext } from '../context.ts'
import { USAGE_DAYS } from '../../../storage/bench/usage.ts'

export async function usage({ deployment, answers, samples }: BenchContext): Promise<Result[]> {
  const { from, to } = USAGE_DAYS
  const way = (name: string, path: string) => ({
    name,
    once: async () => {
      const began = performance.now()
      const answer = await deployment.get(`${path}${path.includes('?') ? '&' : '?'}from=${from}&to=${to}`)
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`)
      return performance.now() - began
    },
  })
  const series = await inTurns(
    [
      way('one’s own, a year', '/api/usage'),
      way('of all by person, a year', '/api/admin/usage?by=person'),
      way('of all as CSV, a year', '/api/admin/usage?by=model&format=csv'),
    ],
    Math.ceil(samples / 4),
    3,
  )
  return [
    {
      goal: 'V8',
      title: `usage over ${answers.toLocaleString('en')} answers: from the request to the whole answer`,
      series,
      verdicts: series.map((one) => below(`${one.name}: p50 ≤ 100 ms`, p50(one), 100, 'ms')),
    },
  ]
}
