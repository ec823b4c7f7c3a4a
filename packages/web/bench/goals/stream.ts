/** W1: an answer of 300 pieces grows at the end of a thread of 300 messages. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Series, p50, quantile, single } from '../../../sandbox/bench/measure.ts'
import { type Result, atMost, below, loadNow } from '../../../sandbox/bench/report.ts'
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
/** As fast as a fast model. */
const PAUSE_MS = 16
const END = 'The end of it.'

interface Measured {
  script: number
  longest: number
  frames: number[]
}

export async function stream({ samples, contenders }: BenchContext): Promise<Result[]> {
  const rounds = Math.min(samples, 5)
  const script: Series[] = contenders.map(({ name }) => ({ name, values: [], failures: 0 }))
  const longest: Series[] = contenders.map(({ name }) => ({ name, values: [], failures: 0 }))
  const frames: Series[] = contenders.map(({ name }) => ({ name, values: [], failures: 0 }))
  for (let round = 0; round < rounds; round++)
    for (const [at, contender] of contenders.entries()) {
      const one = await measure(contender)
      script[at]?.values.push(one.script)
      longest[at]?.values.push(one.longest)
      frames[at]?.values.push(...one.frames)
    }
  for (const one of [...script, ...longest, ...frames]) one.values.sort((a, b) => a - b)
  const [ours = single('', Number.NaN), theirs = single('', Number.NaN)] = script
  const [ourLongest = single('', Number.NaN)] = longest
  const [ourFrames = single('', Number.NaN)] = frames
  const about = `${PIECES} pieces of an answer in a thread of ${MESSAGES} messages`
  return [
    {
      goal: 'W1',
      title: `${about}: scripting for each piece`,
      unit: 'ms',
      series: script,
      verdicts: [atMost('of its time ≤ 1/10', p50(ours), p50(theirs), 0.1)],
      load: loadNow(),
    },
    {
      goal: 'W1',
      title: `${about}: the longest task (0: none over 50 ms)`,
      unit: 'ms',
      series: longest,
      verdicts: [below('longest ≤ 50 ms', quantile(ourLongest, 1), 50, 'ms')],
      load: loadNow(),
    },
    {
      goal: 'W1',
      title: `${about}: between two frames`,
      unit: 'ms',
      series: frames,
      verdicts: [below('p95 ≤ 50 ms', quantile(ourFrames, 0.95), 50, 'ms')],
      load: loadNow(),
    },
  ]
}

async function measure(contender: Contender): Promise<Measured> {
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
  return {
    script: (after.script - before.script) / PIECES,
    longest: Math.max(0, ...seen.tasks),
    frames: seen.frames,
  }
}
