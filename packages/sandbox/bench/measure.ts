/**
 * Sampling: ways of doing the same, taken in turns, so that a busy moment of the machine hits all
 * of them alike.
 */

import { setTimeout as sleep } from 'node:timers/promises'

const REST_MS = 30

export interface Way {
  name: string
  /** Do it once. What it returns is the figure; without one, the milliseconds that it took. */
  once: () => Promise<number | undefined | void>
}

/** What one way came to. `values` are sorted. */
export interface Series {
  name: string
  values: number[]
  failures: number
  /** Of the first failure. */
  error?: string
}

/**
 * Each way `samples` times, in turns, after `warmUp` rounds that do not count. A failure is
 * counted, and ends nothing.
 */
export async function inTurns(ways: readonly Way[], samples: number, warmUp: number): Promise<Series[]> {
  const series = ways.map(({ name }): Series => ({ name, values: [], failures: 0 }))
  for (let round = -warmUp; round < samples; round++) {
    for (const [place, way] of ways.entries()) {
      const mine = series[place]
      if (!mine) continue
      try {
        // What the way before leaves the engine to do is not this one's time.
        await sleep(REST_MS)
        const from = performance.now()
        const figure = await way.once()
        if (round >= 0) mine.values.push(figure ?? performance.now() - from)
      } catch (error) {
        if (round >= 0) mine.failures++
        mine.error ??= error instanceof Error ? error.message : String(error)
      }
    }
  }
  for (const one of series) one.values.sort((one, other) => one - other)
  return series
}

/** The value that a share `q` of the samples does not pass; NaN where there are none. */
export function quantile({ values }: Series, q: number): number {
  return values[Math.min(values.length - 1, Math.floor(values.length * q))] ?? Number.NaN
}

export const p50 = (series: Series): number => quantile(series, 0.5)
export const p99 = (series: Series): number => quantile(series, 0.99)

/** A series of one figure. */
export function single(name: string, value: number): Series {
  return { name, values: [value], failures: 0 }
}
