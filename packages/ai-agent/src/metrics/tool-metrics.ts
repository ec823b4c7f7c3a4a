/** Counts finished calls, in bounded memory for any number of calls and tool names. */
import type { FailureReason } from '@sandlot/shared/chat/reasons'
import { type BucketCounts, Buckets, POWERS_OF_FOUR, SECONDS } from './buckets.ts'
import { Histogram } from './histogram.ts'

interface CallRecord {
  /** The tool's id. */
  tool: string
  outcome: 'completed' | FailureReason
  waitMs: number
  runMs: number
  /** Bytes of output; 0 when there was none. */
  bytes: number
  truncated: boolean
  cached: boolean
  retries: number
}

/**
 * Rates are 0–1; all are 0 without calls. Percentiles are exact up to 512 calls, then within 2 %.
 */
export interface ToolStats {
  count: number
  successRate: number
  meanMs: number
  p50Ms: number
  p95Ms: number
  /** Milliseconds of all calls together. */
  waitMs: number
  truncationRate: number
  /** Calls that were answered from the cache. */
  cached: number
  /** Tries beyond the first, of all calls. */
  retries: number
  /** Calls by outcome. */
  outcomes: Partial<Record<CallRecord['outcome'], number>>
  /** Bytes of output, of each call that had any. */
  sizes: BucketCounts
  /** Seconds without waiting, by outcome. */
  durations: ReadonlyMap<CallRecord['outcome'], BucketCounts>
}

export interface ToolMetrics {
  record(call: CallRecord): void
  /** Statistics of one tool by id, or of all calls. */
  getStats(tool?: string): ToolStats
  /** Ids of the tools that were called, sorted. */
  tools(): string[]
}

const MAX_TOOLS = 1000
const OTHER = '(other)'

interface Series {
  runMs: Histogram
  waitMs: number
  truncated: number
  cached: number
  retries: number
  sizes: Buckets
  durations: Map<CallRecord['outcome'], Buckets>
  outcomes: Partial<Record<CallRecord['outcome'], number>>
}

export function createToolMetrics(): ToolMetrics {
  const all = emptySeries()
  const byTool = new Map<string, Series>()

  const seriesOf = (tool: string): Series => {
    const name = byTool.has(tool) || byTool.size < MAX_TOOLS ? tool : OTHER
    const known = byTool.get(name) ?? emptySeries()
    byTool.set(name, known)
    return known
  }
  return {
    record(call) {
      for (const series of [all, seriesOf(call.tool)]) add(series, call)
    },
    getStats: (tool) => statsOf(tool === undefined ? all : (byTool.get(tool) ?? emptySeries())),
    tools: () => [...byTool.keys()].toSorted(),
  }
}

function emptySeries(): Series {
  return {
    runMs: new Histogram(),
    waitMs: 0,
    truncated: 0,
    cached: 0,
    retries: 0,
    sizes: new Buckets(POWERS_OF_FOUR),
    durations: new Map(),
    outcomes: {},
  }
}

function add(series: Series, call: CallRecord): void {
  series.runMs.add(call.runMs)
  series.waitMs += call.waitMs
  if (call.truncated) series.truncated++
  if (call.cached) series.cached++
  series.retries += call.retries
  if (call.bytes > 0) series.sizes.add(call.bytes)
  const durations = series.durations.get(call.outcome) ?? new Buckets(SECONDS)
  series.durations.set(call.outcome, durations)
  durations.add(call.runMs / 1_000)
  series.outcomes[call.outcome] = (series.outcomes[call.outcome] ?? 0) + 1
}

function statsOf(series: Series): ToolStats {
  const { count, mean, p50, p95 } = series.runMs.summary()
  const per = (sum: number): number => (count === 0 ? 0 : sum / count)
  return {
    count,
    successRate: per(series.outcomes.completed ?? 0),
    meanMs: mean,
    p50Ms: p50,
    p95Ms: p95,
    waitMs: series.waitMs,
    truncationRate: per(series.truncated),
    cached: series.cached,
    retries: series.retries,
    outcomes: { ...series.outcomes },
    sizes: series.sizes.counts(),
    durations: new Map([...series.durations].map(([outcome, seconds]) => [outcome, seconds.counts()])),
  }
}
