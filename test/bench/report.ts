/** Results of goals as text, and as a chapter of docs/benchmarks.md. */
import { cpus, loadavg, release } from 'node:os'

import { p50, p99, type Series } from './measure.ts'

export type Unit = 'ms' | 'MB/s' | 'calls/s' | 'MiB' | 'KiB' | 'processes' | 'µs' | 'elements' | 'tokens/s'

/** One demand on a figure: `reached` is decided where it was measured. */
export interface Verdict {
  text: string
  figure: string
  reached: boolean
  /** The reason why it is missed, if it is. */
  obstacle?: string
}

export interface Result {
  goal: string
  title: string
  /** Default: milliseconds. */
  unit?: Unit
  series: Series[]
  verdicts: Verdict[]
}

/** A result as it is written, with the machine's load when its goal was over. */
export interface Reported extends Required<Result> {
  load: number
}

export function reported(result: Result): Reported {
  const [load = 0] = loadavg()
  return { unit: 'ms', ...result, load }
}

/** `first` is at most `share` of `other`. Prints the share as people say it: 1/40, 0.85, 1.3×. */
export function atMost(text: string, first: number, other: number, share: number): Verdict {
  return { text, figure: ratio(first / other), reached: first / other <= share }
}

export function atLeast(text: string, first: number, other: number, share: number): Verdict {
  return { text, figure: ratio(first / other), reached: first / other >= share }
}

/** A figure of its own, not a share of another one. */
export function below(text: string, figure: number, most: number, unit: string): Verdict {
  return {
    text,
    figure: Number.isNaN(figure) ? 'no figure' : `${short(figure)} ${unit}`,
    reached: figure <= most,
  }
}

function ratio(share: number): string {
  if (!Number.isFinite(share)) return 'no figure'
  return share < 0.5 ? `1/${short(1 / share)}` : `${short(share)}×`
}

function short(value: number): string {
  if (Number.isNaN(value)) return '–' // no sample: it always failed
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toFixed(digits)
}

/** The conditions that every figure of a run depends on. */
export interface Machine {
  cpu: string
  cores: number
  kernel: string
  /** The versions of Node and of the servers that are measured. */
  versions: string[]
  samples: number
  many: number
  at: string
}

export function describeMachine(servers: readonly string[], samples: number, many: number): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    kernel: release(),
    versions: [`Node ${process.version}`, ...servers],
    samples,
    many,
    at: new Date().toISOString().slice(0, 10),
  }
}

export function machineLine({ cores, cpu, kernel, versions }: Machine): string {
  return `${cores} cores (${cpu}), kernel ${kernel}, ${versions.join(', ')}`
}

/** One result as the terminal and the page show it. A single sample has no p99. */
export function asText({ goal, title, unit, series, verdicts, load }: Reported): string {
  const lines = [`${goal}  ${title} (${unit}; load ${load.toFixed(1)})`]
  const width = Math.max(34, ...series.map(({ name }) => name.length))
  for (const one of series) {
    const failures = one.failures === 0 ? '' : `  ${one.failures} failed: ${one.error ?? ''}`
    const n = one.values.length
    const spread = n > 1 ? `${short(p99(one)).padStart(9)}${`n=${n}`.padStart(9)}` : ''
    lines.push(`    ${one.name.padEnd(width)}${short(p50(one)).padStart(9)}${spread}${failures}`)
  }
  for (const { text, figure, reached, obstacle } of verdicts) {
    lines.push(`    ${reached ? '✓' : '✗'} ${text}: ${figure}`)
    if (!reached && obstacle !== undefined) lines.push(`      ${obstacle}`)
  }
  return lines.join('\n')
}

/** All results in one block. */
export function asMarkdown(results: readonly Reported[]): string[] {
  return ['', '```text', results.map(asText).join('\n\n'), '```']
}

/** The page with this chapter in place of the one under the same heading, or after all others. */
export function withChapter(page: string, heading: string, lines: readonly string[]): string {
  const chapters = page.split(/^(?=# )/m).filter((chapter) => chapter.trim() !== '')
  const text = `${[heading, '', ...lines].join('\n')}\n`
  const place = chapters.findIndex((chapter) => chapter.startsWith(`${heading}\n`))
  chapters.splice(place === -1 ? chapters.length : place, 1, text)
  return chapters.map((chapter) => `${chapter.trimEnd()}\n`).join('\n')
}
