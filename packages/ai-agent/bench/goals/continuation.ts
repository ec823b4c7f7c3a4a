/** A1, A2: what is added between the model's call and the tool, and between the tool and the model. */
import { inTurns, p50, p99, type Series } from '../../../sandbox/bench/measure.ts'
import { type Result, below, loadNow } from '../../../sandbox/bench/report.ts'
import { nowMs } from '../clock.ts'
import type { BenchContext } from '../context.ts'
import { wayOf } from '../contender.ts'

export async function continuation({ contenders, player, samples }: BenchContext): Promise<Result[]> {
  const back = new Map<string, number[]>()
  const ways = (await contenders()).map((contender) =>
    wayOf(contender, async ({ name, whose, runTools }) => {
      await player.marks(whose)
      let startedAt = Number.NaN
      let endedAt = Number.NaN
      await runTools('call', (text) => {
        startedAt = nowMs()
        endedAt = nowMs()
        return text
      })
      const [first, second] = await player.marks(whose)
      if (first === undefined || second === undefined) throw new Error('there were not two requests')
      back.set(name, [...(back.get(name) ?? []), second.askedAt - endedAt])
      return startedAt - first.lastAt
    }),
  )
  const there = await inTurns(ways, samples, 20)
  const again = there.map(({ name }): Series => {
    const values = (back.get(name) ?? []).slice(20).toSorted((one, other) => one - other)
    return { name, values, failures: 0 }
  })
  const load = loadNow()
  const [mine] = there
  const [mineAgain] = again
  if (mine === undefined || mineAgain === undefined) throw new Error('nothing was measured')
  const verdicts = (series: Series) => [
    below('p50 ≤ 5 ms', p50(series), 5, 'ms'),
    below('p99 < 100 ms', p99(series), 100, 'ms'),
  ]
  return [
    {
      goal: 'A1',
      title: 'from the last byte of a call to the start of its tool',
      unit: 'ms',
      series: there,
      verdicts: verdicts(mine),
      load,
    },
    {
      goal: 'A2',
      title: 'from the last outcome to the next request',
      unit: 'ms',
      series: again,
      verdicts: verdicts(mineAgain),
      load,
    },
  ]
}
