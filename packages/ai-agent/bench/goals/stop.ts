/** A8: from Stop to the prompt's end, its last outcome included: while a command runs, while the model speaks, while leave is asked for. */
import { type Series, type Way, inTurns, nowMs, p99, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import { type Stoppable, waysOf } from '../contender.ts'
import type { BenchContext } from '../context.ts'
import type { Player } from '../player.ts'
import { fell, newMark, survivors, untilGrown } from '../process-tree.ts'

const MOST_MS = 100

export async function stop(context: BenchContext): Promise<Result[]> {
  return [...(await aCommand(context)), ...(await aModel(context)), await aQuestion(context)]
}

/** Milliseconds of the machine's clock. */
async function timed({ stop }: Stoppable): Promise<number> {
  const from = nowMs()
  await stop()
  return nowMs() - from
}

function result(title: string, series: Series[]): Result {
  const [mine = seriesOf('')] = series
  const verdicts = [below(`p99 ≤ ${MOST_MS} ms`, p99(mine), MOST_MS, 'ms')]
  return { goal: 'A8', title, series, verdicts }
}

async function aCommand({ contenders, samples }: BenchContext): Promise<Result[]> {
  const left = new Map<string, number>()
  const ways = (await contenders()).flatMap(({ name, runTree }): Way[] => {
    if (runTree === undefined) return []
    const once = async (): Promise<number> => {
      const mark = newMark()
      const running = await runTree(`tree-${mark}`)
      await untilGrown(mark)
      const took = await timed(running)
      left.set(name, Math.max(left.get(name) ?? 0, survivors(mark).length))
      await fell()
      return took
    }
    return [{ name, once }]
  })
  const series = await inTurns(ways, Math.max(5, Math.ceil(samples / 10)), 2)
  await fell()
  const remaining = series.map(({ name }) => seriesOf(name, left.get(name) ?? Number.NaN))
  return [
    result(
      'Stop while a command with 132 processes runs, in a sandbox of sbxd without a container, until the prompt has ended',
      series,
    ),
    {
      goal: 'A8',
      title: 'processes of the command that are left then',
      unit: 'processes',
      series: remaining,
      verdicts: [below('none', remaining[0]?.values[0] ?? Number.NaN, 0, 'processes')],
    },
  ]
}

async function aModel({ contenders, player, samples }: BenchContext): Promise<Result[]> {
  const heard = new Map<string, number[]>()
  const ways = waysOf(await contenders(), async ({ name, whose, speak }) => {
    await player.marks(whose)
    const running = await speak('endless')
    const from = nowMs()
    await running.stop()
    const took = nowMs() - from
    heard.set(name, [...(heard.get(name) ?? []), (await hungUpAt(player, whose)) - from])
    return took
  })
  const warmUp = 5
  const ended = await inTurns(ways, Math.max(10, Math.ceil(samples / 4)), warmUp)
  const hungUp = ended.map(({ name }) => seriesOf(name, ...(heard.get(name) ?? []).slice(warmUp)))
  return [
    result('Stop while the model speaks, until the prompt has ended', ended),
    result('Stop while the model speaks, until its provider knows', hungUp),
  ]
}

async function hungUpAt(player: Player, whose: string): Promise<number> {
  for (;;) {
    const [mark] = await player.marks(whose)
    if (mark !== undefined) return mark.lastAt
  }
}

/** The others do not wait for a person: there a prompt ends with the question. */
async function aQuestion({ ours, samples }: BenchContext): Promise<Result> {
  const once = async (): Promise<number> => timed(await ours.askForLeave('touch'))
  const series = await inTurns([{ name: ours.name, once }], Math.max(10, Math.ceil(samples / 4)), 5)
  return result('Stop while a call waits for approval, until the prompt has ended', series)
}
