/** What a goal came to, as a table, as Markdown and as JSON. */
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { cpus, loadavg, release } from 'node:os'

import { p50, p99, type Series } from './measure.ts'

export type Unit = 'ms' | 'MB/s' | 'calls/s' | 'MiB' | 'KiB' | 'processes' | 'µs' | 'elements' | 'tokens/s'

/** One demand on a figure: `reached` is decided where it was measured. */
export interface Verdict {
  text: string
  figure: string
  reached: boolean
  /** What stands in the way, for whoever reads that it was missed. */
  obstacle?: string
}

export interface Result {
  goal: string
  title: string
  unit: Unit
  series: Series[]
  verdicts: Verdict[]
  /** Load of the machine when it was over. */
  load: number
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
  return Math.abs(value) >= 100
    ? value.toFixed(0)
    : Math.abs(value) >= 10
      ? value.toFixed(1)
      : value.toFixed(2)
}

/** What every figure of this run depends on. */
export interface Machine {
  cpu: string
  cores: number
  kernel: string
  engine: string
  node: string
  samples: number
  sandboxes: number
  at: string
}

export function describeMachine(engine: string, samples: number, sandboxes: number): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    kernel: release(),
    engine,
    node: process.version,
    samples,
    sandboxes,
    at: new Date().toISOString().slice(0, 10),
  }
}

export function loadNow(): number {
  return loadavg()[0] ?? 0
}

export function asText(result: Result): string {
  const lines = [`${result.goal}  ${result.title}  (load ${result.load.toFixed(1)})`]
  for (const one of result.series) {
    const failures = one.failures === 0 ? '' : `  ${one.failures} failed: ${one.error ?? ''}`
    lines.push(
      `    ${one.name.padEnd(34)}${short(p50(one)).padStart(9)}${short(p99(one)).padStart(9)} ${result.unit}${`n=${one.values.length}`.padStart(8)}${failures}`,
    )
  }
  for (const { text, figure, reached } of result.verdicts)
    lines.push(`    ${reached ? '✓' : '✗'} ${text}: ${figure}`)
  return lines.join('\n')
}

export function asMarkdown(machine: Machine, results: readonly Result[]): string[] {
  return [
    'Written by `./sandlot bench sandbox --markdown docs/benchmarks.md`. Every row was measured in one run, the ways in turns, on one',
    'machine, so the ratios carry further than the milliseconds. Goals are numbered; ✓ and ✗ say whether this run reached them.',
    '',
    `${machine.at}, ${machine.cores} cores (${machine.cpu}), kernel ${machine.kernel}, Docker Engine ${machine.engine}, Node ${machine.node};`,
    `${machine.samples} samples where a call takes milliseconds, ${machine.sandboxes} sandboxes where there are many.`,
    ...tables(results),
  ]
}

/** One section for each result, as lines. */
export function tables(results: readonly Result[]): string[] {
  const lines: string[] = []
  for (const result of results) {
    lines.push(
      '',
      `## ${result.goal} ${result.title}`,
      '',
      `| way | p50 ${result.unit} | p99 ${result.unit} | samples | failures |`,
    )
    lines.push('| --- | ---: | ---: | ---: | ---: |')
    for (const one of result.series)
      lines.push(
        `| ${one.name} | ${short(p50(one))} | ${short(p99(one))} | ${one.values.length} | ${one.failures} |`,
      )
    lines.push('')
    for (const { text, figure, reached, obstacle } of result.verdicts) {
      lines.push(`- ${reached ? '✓' : '✗'} ${text}: **${figure}**`)
      if (!reached && obstacle !== undefined) lines.push(`  ${obstacle}`)
    }
    lines.push('', `Load at the end: ${result.load.toFixed(1)}.`)
  }
  return lines
}

/** Write the lines as this chapter of a page, which may be new. */
export async function writeChapter(path: string, heading: string, lines: readonly string[]): Promise<void> {
  const page = existsSync(path) ? await readFile(path, 'utf8') : ''
  await writeFile(path, withChapter(page, heading, lines))
}

/**
 * The page with this chapter in place of the one that it had under this heading, or behind all
 * others.
 */
function withChapter(page: string, heading: string, lines: readonly string[]): string {
  const chapters = page.split(/^(?=# )/m).filter((chapter) => chapter.trim() !== '')
  const text = `${[heading, '', ...lines].join('\n')}\n`
  const place = chapters.findIndex((chapter) => chapter.startsWith(`${heading}\n`))
  if (place === -1) chapters.push(text)
  else chapters[place] = text
  return chapters.map((chapter) => `${chapter.trimEnd()}\n`).join('\n')
}
