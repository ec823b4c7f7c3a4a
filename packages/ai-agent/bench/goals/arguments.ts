/** A5: long arguments in thousands of deltas: work that grows with their length, not with its square. */
import { inTurns, nowMs, p50 } from '../../../../test/bench/measure.ts'
import { type Result, atMost } from '../../../../test/bench/report.ts'
import type { BenchContext } from '../context.ts'
import { type Contenders, waysOf } from '../contender.ts'

export async function longArguments({ ours, contenders, player, samples }: BenchContext): Promise<Result[]> {
  const measure = (kilobytes: number, everybody: Contenders) =>
    inTurns(
      waysOf(everybody, async ({ whose, runTools }) => {
        await player.marks(whose)
        let startedAt = Number.NaN
        await runTools(`arguments-${kilobytes}`, (text) => {
          startedAt = nowMs()
          return text.slice(0, 10)
        })
        const [first] = await player.marks(whose)
        return startedAt - (first?.firstAt ?? Number.NaN)
      }),
      Math.max(5, Math.ceil(samples / 20)),
      2,
    )
  const [small] = await measure(100, [ours])
  const [middle] = await measure(200, [ours])
  const all = await measure(400, await contenders())
  return [
    {
      goal: 'A5',
      title: '400 kB of arguments in 4000 deltas: first byte to the tool’s start',
      series: [
        ...all,
        { ...middle, name: `${ours.name}, 200 kB` },
        { ...small, name: `${ours.name}, 100 kB` },
      ],
      verdicts: [
        atMost('200 kB ≤ 2.4 times 100 kB', p50(middle), p50(small), 2.4),
        atMost('400 kB ≤ 2.4 times 200 kB', p50(all[0]), p50(middle), 2.4),
      ],
    },
  ]
}
