/** V1: what the way to the browser adds to each token, with many streams at once. V2: with one. */
import { setTimeout as sleep } from 'node:timers/promises'
import { p50, p99, type Series } from '../../../sandbox/bench/measure.ts'
import { type Result, below, loadNow } from '../../../sandbox/bench/report.ts'
import type { BenchContext, Contender } from '../context.ts'

const TOKENS = 200
export const PAUSE_MS = 50
const ROUNDS = 1

export async function streams({ contenders, many }: BenchContext): Promise<Result[]> {
  const all = await measureStreams(contenders, many)
  const one = await measureStreams(contenders, 1)
  const load = loadNow()
  const [mine, alone] = [all[0], one[0]]
  if (mine === undefined || alone === undefined) throw new Error('nothing was measured')
  return [
    {
      goal: 'V1',
      title: `${many} streams of ${1_000 / PAUSE_MS} tokens a second: from the provider’s write to the reader`,
      unit: 'ms',
      series: all,
      verdicts: [
        below('p50 ≤ 1 ms', p50(mine), 1, 'ms'),
        below('p99 ≤ 10 ms', p99(mine), 10, 'ms'),
        below('tokens that did not come: none', mine.failures, 0, ''),
      ],
      load,
    },
    {
      goal: 'V2',
      title: 'one stream: from the provider’s write to the reader',
      unit: 'ms',
      series: one,
      verdicts: [below('p50 ≤ 1 ms', p50(alone), 1, 'ms')],
      load,
    },
  ]
}

/** Of each contender the delay of every token, with so many streams at once. */
export async function measureStreams(contenders: readonly Contender[], count: number): Promise<Series[]> {
  const series = contenders.map(({ name }): Series => ({ name, values: [], failures: 0 }))
  // The first round only warms up: code is compiled, connections are made.
  for (let round = -1; round < ROUNDS; round++) {
    for (const [place, contender] of contenders.entries()) {
      await sleep(200)
      const each = await Promise.all(
        Array.from({ length: count }, (_, reader) =>
          contender.read(reader, `stream ${round < 0 ? TOKENS / 4 : TOKENS} ${PAUSE_MS}`),
        ),
      )
      const mine = series[place]
      if (round < 0 || mine === undefined) continue
      mine.values.push(...each.flat())
      mine.failures += count * TOKENS - each.flat().length
    }
  }
  for (const one of series) one.values.sort((a, b) => a - b)
  return series
}
