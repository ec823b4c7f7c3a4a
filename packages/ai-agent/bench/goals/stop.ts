/** A8: from Stop to the prompt's end, its last outcome included: while a command runs, while the model speaks, while leave is asked for. */
import { type Series, inTurns, p99, single } from '../../../sandbox/bench/measure.ts'
import { type Result, below, loadNow } from '../../../sandbox/bench/report.ts'
import { nowMs } from '../clock.ts'
import { type Stoppable, wayOf } from '../contender.ts'
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

async function aCommand({ contenders, samples }: BenchContext): Promise<Result[]> {
  const left = new Map<string, number>()
  const ways = (await contenders()).flatMap((contender) => {
    const { name, runTree } = contender
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
    return [wayOf(contender, once)]
  })
  const series = await inTurns(ways, Math.max(5, Math.ceil(samples / 10)), 2)
  await fell()
  const mine = first(series)
  return [
    {
      goal: 'A8',
      title:
        'Stop while a command with 132 processes runs, in a sandbox of sbxd without a container, until the prompt has ended',
      unit: 'ms',
      series,
      verdicts: [below(`p99 ≤ ${MOST_MS} ms`, p99(mine), MOST_MS, 'ms')],
      load: loadNow(),
    },
    {
      goal: 'A8',
      title: 'processes of the command that are left then',
      unit: 'processes',
      series: series.map(({ name }) => single(name, left.get(name) ?? Number.NaN)),
      verdicts: [below('none', left.get(mine.name) ?? Number.NaN, 0, 'processes')],
      load: loadNow(),
    },
  ]
}

async function aModel({ contenders, player, samples }: BenchContext): Promise<Result[]> {
  const heard = new Map<string, number[]>()
  const ways = (await contenders()).map((contender) =>
    wayOf(contender, async ({ name, whose, speak }) => {
      await player.marks(whose)
      const running = await speak('endless')
      const from = nowMs()
      await running.stop()
      const took = nowMs() - from
      heard.set(name, [...(heard.get(name) ?? []), (await hungUpAt(player, whose)) - from])
      return took
    }),
  )
  const warmUp = 5
  const ended = await inTurns(ways, Math.max(10, Math.ceil(samples / 4)), warmUp)
  const hungUp = ended.map(({ name }): Series => {
    const values = (heard.get(name) ?? []).slice(warmUp).toSorted((one, other) => one - other)
    return { name, values, failures: 0 }
  })
  const result = (title: string, series: Series[]): Result => ({
    goal: 'A8',
    title,
    unit: 'ms',
    series,
    verdicts: [below(`p99 ≤ ${MOST_MS} ms`, p99(first(series)), MOST_MS, 'ms')],
    load: loadNow(),
  })
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
  return {
    goal: 'A8',
    title: 'Stop while a call waits for approval, until the prompt has ended',
    unit: 'ms',
    series,
    verdicts: [below(`p99 ≤ ${MOST_MS} ms`, p99(first(series)), MOST_MS, 'ms')],
    load: loadNow(),
  }
}

function first(series: readonly Series[]): Series {
  const [mine] = series
  if (mine === undefined) throw new Error('nothing was measured')
  return mine
}
