/** Sampling: ways to do the same thing, taken in turns, so that a busy moment of the machine affects all of them alike. */
import { setTimeout as sleep } from 'node:timers/promises'

const REST_MS = 30

export interface Way {
  name: string
  /** Do it once. Its value is the figure; without one, the milliseconds that it took. */
  once: () => Promise<number | undefined | void>
}

export interface Series {
  name: string
  values: number[]
  failures: number
  /** The first failure's message. */
  error?: string
}

/** A series for each of these. */
export type SeriesOfEach<Items extends readonly unknown[]> = { -readonly [place in keyof Items]: Series }

export function seriesOf(name: string, ...values: number[]): Series {
  return { name, values, failures: 0 }
}

/**
 * Each way `samples` times, in turns, after `warmUp` rounds that do not count. A failure is
 * counted, and ends nothing.
 */
export async function inTurns<const Ways extends readonly Way[]>(
  ways: Ways,
  samples: number,
  warmUp: number,
): Promise<SeriesOfEach<Ways>> {
  const sampled = ways.map((way) => ({ way, series: seriesOf(way.name) }))
  for (let round = -warmUp; round < samples; round++) {
    for (const { way, series } of sampled) {
      try {
        // The work that the previous way leaves to the engine is not part of this one's time.
        await sleep(REST_MS)
        const from = performance.now()
        const figure = await way.once()
        if (round >= 0) series.values.push(figure ?? performance.now() - from)
      } catch (error) {
        if (round >= 0) series.failures++
        series.error ??= error instanceof Error ? error.message : String(error)
      }
    }
  }
  return sampled.map(({ series }) => series) as SeriesOfEach<Ways>
}

/** The value that a share `q` of the samples does not pass; NaN where there are none. */
export function quantile({ values }: Series, q: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN
}

export const p50 = (series: Series): number => quantile(series, 0.5)
export const p99 = (series: Series): number => quantile(series, 0.99)

/** Milliseconds of the machine's monotonic clock: the same in every process, unlike `performance.now()`. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
