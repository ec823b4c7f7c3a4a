/** A5: long arguments in thousands of deltas: work that grows with their length, not with its square. */
import { inTurns, p50, type Series } from '../../../sandbox/bench/measure.ts'
import { type Result, atMost, loadNow } from '../../../sandbox/bench/report.ts'
import { nowMs } from '../clock.ts'
import type { BenchContext } from '../context.ts'
import { wayOf } from '../contender.ts'

const KILOBYTES = [100, 200, 400]

export async function longArguments({ contenders, player, samples }: BenchContext): Promise<Result[]> {
  const results: Result[] = []
  const mine: Series[] = []
  for (const kilobytes of KILOBYTES) {
    const ways = (await contenders()).map((contender) =>
      wayOf(contender, async ({ whose, runTools }) => {
        await player.marks(whose)
        let startedAt = Number.NaN
        await runTools(`arguments-${kilobytes}`, (text) => {
          startedAt = nowMs()
          return text.slice(0, 10)
        })
        const [first] = await player.marks(whose)
        return startedAt - (first?.firstAt ?? Number.NaN)
      }),
    )
    const series = await inTurns(ways, Math.max(5, Math.ceil(samples / 20)), 2)
    if (series[0] !== undefined) mine.push(series[0])
    const title = `${kilobytes} kB of arguments in ${kilobytes * 10} deltas: first byte to the tool’s start`
    results.push({ goal: 'A5', title, unit: 'ms', series, verdicts: [], load: loadNow() })
  }
  const [small, middle, large] = mine
  if (small === undefined || middle === undefined || large === undefined)
    throw new Error('nothing was measured')
  results
    .at(-1)
    ?.verdicts.push(
      atMost('200 kB ≤ 2.4 times 100 kB', p50(middle), p50(small), 2.4),
      atMost('400 kB ≤ 2.4 times 200 kB', p50(large), p50(middle), 2.4),
    )
  return results
}
