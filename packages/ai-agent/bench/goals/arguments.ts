/** A5: long arguments in thousands of deltas: work that grows with their length, not with its square. */
import { inTurns, nowMs, p50 } from '../../../../test/bench/measure.ts'
import { type Result, atMost } from '../../../../test/bench/report.ts'
import type { BenchContext } from '../context.ts'
import { type Contender, waysOf } from '../contender.ts'

export async function longArguments(context: BenchContext): Promise<Result[]> {
  const { ours, contenders, player, samples } = context
  const measure =
    (kilobytes: number) =>
    async ({ whose, runTools }: Contender): Promise<number> => {
      await player.marks(whose)
      let startedAt = Number.NaN
      await runTools(`arguments-${kilobytes}`, (text) => {
        startedAt = nowMs()
        return text.slice(0, 10)
      })
      const [first] = await player.marks(whose)
      return startedAt - (first?.firstAt ?? Number.NaN)
    }
  const series = await inTurns(
    [
      { name: 'Sandlot, 100 kB', once: () => measure(100)(ours) },
      { name: 'Sandlot, 200 kB', once: () => measure(200)(ours) },
      ...waysOf(await contenders(), measure(400)),
    ],
    Math.max(5, Math.ceil(samples / 20)),
    2,
  )
  const [small, middle, large] = series
  return [
    {
      goal: 'A5',
      title: '400 kB of arguments in 4000 deltas: first byte to the tool’s start',
      series,
      verdicts: [
        atMost('200 kB ≤ 2.4 times 100 kB', p50(middle), p50(small), 2.4),
        atMost('400 kB ≤ 2.4 times 200 kB', p50(large), p50(middle), 2.4),
      ],
    },
  ]
}
