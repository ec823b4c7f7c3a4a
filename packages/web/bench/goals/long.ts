/** W2, W3: what a long chat keeps in the document, and how soon it can be read and answered. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Way, inTurns, p50, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import { type BenchContext, type Contender, LAST_WORDS, calls, drawn, messages } from '../context.ts'

const CALLS = 2_800
const EVENTS = 10_000

export async function nodes({ contenders }: BenchContext): Promise<Result[]> {
  const series = []
  for (const contender of contenders) series.push(seriesOf(contender.name, await countNodes(contender)))
  const [ours = Number.NaN] = series.map(p50)
  return [
    {
      goal: 'W2',
      title: `elements in the document of a chat of ${CALLS.toLocaleString('en')} calls`,
      unit: 'elements',
      series,
      verdicts: [below('≤ 5,000', ours, 5_000, 'elements')],
    },
  ]
}

async function countNodes(contender: Contender): Promise<number> {
  await using open = await contender.open('s_calls', calls(CALLS))
  await drawn(open.page, LAST_WORDS)
  await sleep(1_000)
  return Number(await open.page.evaluate('document.getElementsByTagName("*").length'))
}

export async function opening({ samples, contenders }: BenchContext): Promise<Result[]> {
  const results: Result[] = []
  for (const [what, make] of [
    ['messages', () => messages((EVENTS * 2) / 4)],
    ['calls', () => calls(Math.floor((EVENTS * 40) / 84))],
  ] as const) {
    const way = (one: Contender): Way => ({ name: one.name, once: () => untilRead(one, make) })
    const series = await inTurns([way(contenders[0]), way(contenders[1])], Math.min(samples, 3), 0)
    results.push({
      goal: 'W3',
      title: `a chat of ${EVENTS.toLocaleString('en')} events, ${what}: from the address to its last words, with the page at rest`,
      series,
      verdicts: [below('p50 ≤ 1,000 ms', p50(series[0]), 1_000, 'ms')],
    })
  }
  return results
}

/** From the navigation until a frame is painted behind the last words. */
async function untilRead(contender: Contender, make: () => ReturnType<typeof calls>): Promise<number> {
  await using open = await contender.open('s_long', make())
  await drawn(open.page, LAST_WORDS)
  return Number(
    await open.page.evaluate(
      'new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))',
    ),
  )
}
