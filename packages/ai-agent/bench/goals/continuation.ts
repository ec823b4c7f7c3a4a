/** A1, A2: what is added between the model's call and the tool, and between the tool and the model. */
import { type Series, inTurns, nowMs, p50, p99, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import type { BenchContext } from '../context.ts'
import { waysOf } from '../contender.ts'

const WARM_UP = 20

export async function continuation({ contenders, player, samples }: BenchContext): Promise<Result[]> {
  const back = new Map<string, number[]>()
  const ways = waysOf(await contenders(), async ({ name, whose, runTools }) => {
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
  })
  const there = await inTurns(ways, samples, WARM_UP)
  const result = (goal: string, title: string, series: Series[], [mine = seriesOf('')] = series): Result => ({
    goal,
    title,
    series,
    verdicts: [below('p50 ≤ 5 ms', p50(mine), 5, 'ms'), below('p99 < 100 ms', p99(mine), 100, 'ms')],
  })
  const again = there.map(({ name }) => seriesOf(name, ...(back.get(name) ?? []).slice(WARM_UP)))
  return [
    result('A1', 'from the last byte of a call to the start of its tool', there),
    result('A2', 'from the last outcome to the next request', again),
  ]
}
