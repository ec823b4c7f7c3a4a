/** W1: an answer of 300 pieces grows at the end of a thread of 300 messages. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Series, p50, quantile, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, atMost, below } from '../../../../test/bench/report.ts'
import {
  type BenchContext,
  type Contender,
  LAST_WORDS,
  begin,
  drawn,
  messages,
  pieces,
  timesOf,
  watched,
} from '../context.ts'

const MESSAGES = 300
const PIECES = 300
/** The pace of a fast model. */
const PAUSE_MS = 16
const END = 'The end of it.'

/** Ours and theirs. */
type Pair = [Series, Series]

export async function stream({ samples, contenders }: BenchContext): Promise<Result[]> {
  const measured = contenders.map((contender) => ({
    contender,
    script: seriesOf(contender.name),
    longest: seriesOf(contender.name),
    frames: seriesOf(contender.name),
  }))
  for (let round = 0; round < Math.min(samples, 5); round++)
    for (const { contender, ...into } of measured) await measure(contender, into)
  const [script, longest, frames] = (['script', 'longest', 'frames'] as const).map((kind) =>
    measured.map((one) => one[kind]),
  ) as [Pair, Pair, Pair]
  const about = `${PIECES} pieces of an answer in a thread of ${MESSAGES} messages`
  return [
    {
      goal: 'W1',
      title: `${about}: scripting for each piece`,
      series: script,
      verdicts: [atMost('of its time ≤ 1/10', p50(script[0]), p50(script[1]), 0.1)],
    },
    {
      goal: 'W1',
      title: `${about}: the longest task (0: none over 50 ms)`,
      series: longest,
      verdicts: [below('longest ≤ 50 ms', quantile(longest[0], 1), 50, 'ms')],
    },
    {
      goal: 'W1',
      title: `${about}: between two frames`,
      series: frames,
      verdicts: [below('p95 ≤ 50 ms', quantile(frames[0], 0.95), 50, 'ms')],
    },
  ]
}

async function measure(
  contender: Contender,
  { script, longest, frames }: { script: Series; longest: Series; frames: Series },
): Promise<void> {
  const log = messages(MESSAGES)
  await using open = await contender.open('s_stream', log)
  const { page, cdp, service } = open
  await drawn(page, LAST_WORDS)
  await sleep(1_000)
  service.emit('s_stream', log.prompt('Tell me more.'))
  await drawn(page, 'Tell me more.')
  await sleep(500)
  await begin(page)
  const before = await timesOf(cdp)
  const words = Array.from({ length: PIECES - 1 }, (_, at) =>
    at % 12 === 11 ? `word${at}.\n\n` : `word${at} `,
  )
  for (const piece of pieces(log, [...words, END])) {
    service.emit('s_stream', [piece])
    await sleep(PAUSE_MS)
  }
  await drawn(page, END)
  const after = await timesOf(cdp)
  const seen = await watched(page)
  script.values.push((after.script - before.script) / PIECES)
  longest.values.push(Math.max(0, ...seen.tasks))
  frames.values.push(...seen.frames)
}
