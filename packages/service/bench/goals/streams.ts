/** V1: what the way to the browser adds to each token, with many streams at once. V2: with one. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type SeriesOfEach, p50, p99, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import type { BenchContext, Contender } from '../context.ts'

const TOKENS = 200
export const PAUSE_MS = 50
const ROUNDS = 1

export async function streams({ contenders, many }: BenchContext): Promise<Result[]> {
  const all = await measureStreams(contenders, many)
  const one = await measureStreams(contenders, 1)
  const [mine] = all
  return [
    {
      goal: 'V1',
      title: `${many} streams of ${1_000 / PAUSE_MS} tokens a second: from the provider’s write to the reader`,
      series: all,
      verdicts: [
        below('p50 ≤ 1 ms', p50(mine), 1, 'ms'),
        below('p99 ≤ 10 ms', p99(mine), 10, 'ms'),
        below('tokens that did not come: none', mine.failures, 0, ''),
      ],
    },
    {
      goal: 'V2',
      title: 'one stream: from the provider’s write to the reader',
      series: one,
      verdicts: [below('p50 ≤ 1 ms', p50(one[0]), 1, 'ms')],
    },
  ]
}

/** The delay of every token, with so many streams at once, for each contender. */
export async function measureStreams<const Contenders extends readonly Contender[]>(
  contenders: Contenders,
  count: number,
): Promise<SeriesOfEach<Contenders>> {
  const all = contenders.map((contender) => ({ contender, series: seriesOf(contender.name) }))
  // The first round only warms up: code is compiled, connections are made.
  for (let round = -1; round < ROUNDS; round++) {
    for (const { contender, series } of all) {
      await sleep(200)
      const each = await Promise.all(
        Array.from({ length: count }, (_, reader) =>
          contender.read(reader, `stream ${round < 0 ? TOKENS / 4 : TOKENS} ${PAUSE_MS}`),
        ),
      )
      if (round < 0) continue
      series.values.push(...each.flat())
      series.failures += count * TOKENS - each.flat().length
    }
  }
  return all.map(({ series }) => series) as SeriesOfEach<Contenders>
}
