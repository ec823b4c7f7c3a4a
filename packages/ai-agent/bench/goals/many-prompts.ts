/** A7: 200 prompts at once, each with a call and an answer. */
import { type Series, p50 } from '../../../sandbox/bench/measure.ts'
import { type Result, atMost, below, loadNow } from '../../../sandbox/bench/report.ts'
import type { BenchContext } from '../context.ts'
import type { Contender } from '../contender.ts'

const ROUNDS = 3

export async function manyPrompts({ contenders: everybody, many }: BenchContext): Promise<Result[]> {
  const contenders = await everybody()
  const all = contenders.map(({ name }): Series => ({ name, values: [], failures: 0 }))
  const each = contenders.map(({ name }): Series => ({ name, values: [], failures: 0 }))
  for (let round = -1; round < ROUNDS; round++) {
    for (const [place, contender] of contenders.entries()) {
      const from = performance.now()
      const took = await Promise.allSettled(Array.from({ length: many }, () => timed(contender)))
      if (round < 0) continue
      all[place]?.values.push(performance.now() - from)
      for (const one of took) {
        const mine = each[place]
        if (mine === undefined) continue
        if (one.status === 'fulfilled') mine.values.push(one.value)
        else {
          mine.failures++
          mine.error ??= String(one.reason)
        }
      }
    }
  }
  for (const series of [...all, ...each]) series.values.sort((one, other) => one - other)
  const [mine, ...others] = all
  const slowest = Math.max(...others.filter(({ name }) => !name.startsWith('a bare')).map(p50))
  if (mine === undefined) throw new Error('nothing was measured')
  const load = loadNow()
  return [
    {
      goal: 'A7',
      title: `${many} prompts at once: until all have ended`,
      unit: 'ms',
      series: all,
      verdicts: [
        below('failures: none', each[0]?.failures ?? Number.NaN, 0, ''),
        atMost('≤ 2 times the slower library, which stores nothing', p50(mine), slowest, 2),
      ],
      load,
    },
    {
      goal: 'A7',
      title: `${many} prompts at once: each of them`,
      unit: 'ms',
      series: each,
      verdicts: [],
      load,
    },
  ]
}

async function timed(contender: Contender): Promise<number> {
  const from = performance.now()
  await contender.runTools('call', (text) => text)
  return performance.now() - from
}
