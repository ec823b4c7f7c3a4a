/** A7: 200 prompts at once, each with a call and an answer. */
import { p50, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, atMost, below } from '../../../../test/bench/report.ts'
import type { BenchContext } from '../context.ts'

const ROUNDS = 3

export async function manyPrompts({ contenders: everybody, many }: BenchContext): Promise<Result[]> {
  const all = (await everybody()).map((contender) => ({ contender, series: seriesOf(contender.name) }))
  for (let round = -1; round < ROUNDS; round++) {
    for (const { contender, series } of all) {
      const from = performance.now()
      const prompts = Array.from({ length: many }, () => contender.runTools('call', (text) => text))
      const ended = await Promise.allSettled(prompts)
      if (round < 0) continue
      series.values.push(performance.now() - from)
      for (const one of ended) {
        if (one.status === 'fulfilled') continue
        series.failures++
        series.error ??= String(one.reason)
      }
    }
  }
  const series = all.map((one) => one.series)
  const [mine = seriesOf(''), ...others] = series
  const slowest = Math.max(...others.filter(({ name }) => !name.startsWith('a bare')).map(p50))
  return [
    {
      goal: 'A7',
      title: `${many} prompts at once: until all have ended`,
      series,
      verdicts: [
        below('failures: none', mine.failures, 0, ''),
        atMost('≤ 2 times the slower library, which stores nothing', p50(mine), slowest, 2),
      ],
    },
  ]
}
