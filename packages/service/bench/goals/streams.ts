/** V1: what the way to the browser adds to each token, with many streams at once, and the CPU time of a token. V2: with one. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Series, type SeriesOfEach, p50, p99, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import type { BenchContext, Contender } from '../context.ts'

const PAUSE_MS = 25
export const RATE = `${1_000 / PAUSE_MS} tokens a second`
/** Tokens of one stream: 12 s, which last from the first stream's start to the end of what is measured. */
const TOKENS = 480
/** Measured when all streams run: the start of a prompt is no part of a token's price. */
const SETTLE_MS = 1_000
const MEASURED_MS = 5_000
const ROUNDS = 2

export async function manyStreams({ contenders, many }: BenchContext): Promise<Result[]> {
  const { series, cpu } = await measureStreams(contenders, many)
  const [mine] = series
  const priceOf = (process: string): number => p50(cpu.get(`${mine.name}: ${process}`) ?? seriesOf(process))
  return [
    {
      goal: 'V1',
      title: `${many} streams of ${RATE}: from the provider’s write to the reader`,
      series,
      verdicts: [
        below('p50 ≤ 1.5 ms', p50(mine), 1.5, 'ms'),
        below('p99 ≤ 12 ms', p99(mine), 12, 'ms'),
        below('tokens that did not come: none', mine.failures, 0, ''),
      ],
    },
    {
      goal: 'V1',
      title: `${many} streams of ${RATE}: CPU time of a token, by process`,
      unit: 'µs',
      series: [...cpu.values()],
      verdicts: [
        below('agent: p50 ≤ 68 µs', priceOf('agent'), 68, 'µs'),
        below('service: p50 ≤ 37 µs', priceOf('service'), 37, 'µs'),
      ],
    },
  ]
}

export async function oneStream({ contenders }: BenchContext): Promise<Result[]> {
  const { series } = await measureStreams(contenders, 1)
  return [
    {
      goal: 'V2',
      title: `one stream of ${RATE}: from the provider’s write to the reader`,
      series,
      verdicts: [
        below('p50 ≤ 0.8 ms', p50(series[0]), 0.8, 'ms'),
        below('p99 ≤ 3 ms', p99(series[0]), 3, 'ms'),
      ],
    },
  ]
}

/** The delay of every token in milliseconds, and the CPU time of one in each process in microseconds. */
export async function measureStreams<const Contenders extends readonly Contender[]>(
  contenders: Contenders,
  count: number,
): Promise<{ series: SeriesOfEach<Contenders>; cpu: Map<string, Series> }> {
  const all = contenders.map((contender) => ({ contender, series: seriesOf(contender.name) }))
  const cpu = new Map(
    contenders.flatMap((contender) => Object.keys(contender.cpu()).map((name) => [name, seriesOf(name)])),
  )
  // The first round only warms up: code is compiled, connections are made.
  for (let round = -1; round < ROUNDS; round++) {
    for (const { contender, series } of all) {
      await sleep(200)
      const { delays, missing, spent } = await measureOnce(contender, count)
      if (round < 0) continue
      series.values.push(...delays)
      series.failures += missing
      for (const [name, ms] of Object.entries(spent)) cpu.get(name)?.values.push((ms * 1_000) / delays.length)
    }
  }
  return { series: all.map(({ series }) => series) as SeriesOfEach<Contenders>, cpu }
}

async function measureOnce(
  { read, cpu }: Contender,
  count: number,
): Promise<{ delays: number[]; missing: number; spent: Record<string, number> }> {
  const took = Array.from({ length: count }, (): number[] => [])
  const over = new AbortController()
  const ended = Promise.all(
    took.map((mine, reader) => read(reader, `stream ${TOKENS} ${PAUSE_MS}`, mine)),
  ).finally(() => over.abort())
  const settled = async (): Promise<void> => {
    while (!over.signal.aborted && took.some((mine) => mine.length === 0)) await sleep(PAUSE_MS)
    await sleep(SETTLE_MS)
  }
  await Promise.race([settled(), ended])
  const [first, before] = [took.map((mine) => mine.length), cpu()]
  await sleep(MEASURED_MS)
  const [last, after] = [took.map((mine) => mine.length), cpu()]
  await ended
  return {
    delays: took.flatMap((mine, reader) => mine.slice(first[reader], last[reader])),
    missing: count * TOKENS - took.flat().length,
    spent: Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, ms - (before[name] ?? 0)])),
  }
}
