/** A4: without tools, the first token is there as soon as in a raw stream. */
import { inTurns, p50, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, atMost } from '../../../../test/bench/report.ts'
import { FIRST_TOKEN_MS } from '../player.ts'
import type { BenchContext } from '../context.ts'
import { waysOf } from '../contender.ts'

export async function firstToken({ contenders, samples }: BenchContext): Promise<Result[]> {
  const ways = waysOf(await contenders(), async (one) => {
    const from = performance.now()
    const first = await one.firstToken('slow-text')
    if (first === undefined) throw new Error('there was no text')
    return first - from
  })
  const series = await inTurns(ways, Math.ceil(samples / 3), 5)
  const raw = series.find(({ name }) => name === 'a bare fetch loop') ?? seriesOf('')
  return [
    {
      goal: 'A4',
      title: `first token without tools, of a model that needs ${FIRST_TOKEN_MS} ms for it`,
      series,
      verdicts: [atMost('p50 ≤ 1.05 of a raw stream', p50(series[0]), p50(raw), 1.05)],
    },
  ]
}
