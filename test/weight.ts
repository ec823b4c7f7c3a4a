/** The weight of the repository in figures, and the comparison with those that test/weight.json holds. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { FolderTable } from './arrows.ts'
import { commentsOf, FIRST_WORD } from './comments.ts'
import { cyclesOf, importGraph, sbxdGraph } from './file-cycles.ts'
import { ROOT, type SourceFile } from './source-files.ts'

const WHAT_TO_DO =
  'Take out what this change replaces. If the growth is meant, write the figures with ' +
  '“node --conditions=sandlot-source test/weigh.ts --write”, and say the reason in the commit that does it.'

type Figures = Record<string, number>

export interface Weight {
  whole: Figures
  packages: Record<string, Figures>
}

/** The growth of a figure that needs no decision. */
const SLACK = 0.01

const CODE = /\.(?:tsx?|mjs|js|css|c|h|sh)$/
const PACKAGE = /^(?:packages\/[^/]+|mcp\/[^/]+|docker\/sandbox|docker|test)(?=\/)/
const TEST = /(?:^|\/)(?:test|bench|fuzz)\//
const SOURCE = /^(?:(?:packages|mcp)\/[^/]+\/src\/.*\.tsx?|docker\/sandbox\/src\/.*\.[ch])$/

export function weigh(
  files: readonly SourceFile[],
  tables: readonly FolderTable[],
  longFunctions: number,
): Weight {
  const sources = files.filter(({ path }) => SOURCE.test(path))
  const typescript = files.filter(({ path }) => PACKAGE.test(path) && /\.tsx?$/.test(path))
  const comments = sources.flatMap(commentsOf).map((comment) => comment.lines)
  const first = sources
    .filter(({ text }) => /^\s*\/[/*]/.test(text))
    .flatMap((file) => commentsOf(file)[0]?.lines[0] ?? [])
  const lines = comments.flat().length
  const dialect = comments.flatMap(dialectLines).length
  const allowed = tables.flatMap((table) => Object.values(table.allowed))
  const remaining = tables.flatMap((table) => table.remaining ?? [])
  return {
    whole: {
      rooms: allowed.length,
      arrows: allowed.flat().length + remaining.length,
      'upward arrows': remaining.length,
      'file cycles, TypeScript': cyclesOf(importGraph(files)).length,
      'file cycles, C': cyclesOf(sbxdGraph(files)).length,
      'TypeScript in src, lines': linesOf(typescript.filter(({ path }) => SOURCE.test(path))),
      'TypeScript of tests and bench, lines': linesOf(typescript.filter(({ path }) => TEST.test(path))),
      'functions over 60 lines': longFunctions,
      'comment lines in dialect, %': lines === 0 ? 0 : Math.round((dialect / lines) * 1000) / 10,
      'headers that begin with What, Who, How …': first.filter((line) => FIRST_WORD.test(line)).length,
      settings: countIn(files, /^docs\/settings\.md$/, /^- `SANDLOT_\w+`:/gm),
      routes: countIn(
        files,
        /^packages\/shared\/src\/\w+\/actions\.ts$/,
        /'(?:GET|POST|PUT|PATCH|DELETE) \/[^']*'/g,
      ),
      tables: new Set(
        sources.flatMap(({ text }) => [...text.matchAll(/\.createTable\('(\w+)'/g)].map(([, name]) => name)),
      ).size,
      'agent methods': countIn(files, /^packages\/shared\/src\/acp\/meta\.ts$/, /'_sandlot\/\w+'/g),
      'words of docs': files
        .filter(({ path }) => /^docs\/[^/]+\.md$/.test(path))
        .flatMap(({ text }) => text.match(/\S+/g) ?? []).length,
    },
    packages: packageFigures(files),
  }
}

function linesOf(files: readonly SourceFile[]): number {
  return files.reduce((sum, { text }) => sum + text.split('\n').length - 1, 0)
}

function packageFigures(files: readonly SourceFile[]): Weight['packages'] {
  const code = files.filter(({ path }) => CODE.test(path) && PACKAGE.test(path))
  const packages = Map.groupBy(code, ({ path }) => PACKAGE.exec(path)?.[0] ?? '')
  return Object.fromEntries(
    [...packages]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, all]) => {
        const sources = all.filter(({ path }) => !TEST.test(path))
        const tests = all.filter(({ path }) => TEST.test(path))
        return [name, { source: linesOf(sources), tests: linesOf(tests), files: sources.length }]
      }),
  )
}

/** A figure whose place has moved fails here, rather than being weighed as nothing. */
function countIn(files: readonly SourceFile[], path: RegExp, pattern: RegExp): number {
  const places = files.filter((file) => path.test(file.path))
  const count = new Set(places.flatMap(({ text }) => text.match(pattern) ?? [])).size
  if (count === 0)
    throw new Error(`${path.source} has none of ${pattern.source}: give test/weight.ts its new place`)
  return count
}

/** Words of this code that no reader of another one would search for. */
const DIALECT =
  /\b(?:hears?|told|tells?|goes on|anew|besides|of late|meanwhile|thereby|once more|fellows?|unkept)\b/i

function dialectLines(comment: readonly string[]): string[] {
  return comment.filter((line, at) => (at === 0 && FIRST_WORD.test(line)) || DIALECT.test(line))
}

/**
 * Functions over 60 lines below `root`: in TypeScript by oxlint, which parses; in sbxd between a `{` and a `}` in the
 * first column, which is where its functions have them.
 */
export function countLongFunctions(files: readonly SourceFile[], root = ROOT): number {
  const sources = files.map(({ path }) => path).filter((path) => SOURCE.test(path) && /\.tsx?$/.test(path))
  const folders = [...new Set(sources.map((path) => path.split('/', 3).join('/')))]
  const inC = files
    .filter(({ path }) => SOURCE.test(path) && path.endsWith('.c'))
    .flatMap(({ text }) => text.match(/^\{\n[\s\S]*?^\}/gm) ?? [])
  return [...lintedLengths(folders, root), ...inC.map((body) => body.split('\n').length)].filter(
    (lines) => lines > 60,
  ).length
}

function lintedLengths(folders: readonly string[], root: string): number[] {
  const rule = 'max-lines-per-function'
  const printed = (args: readonly string[]): string => {
    try {
      return execFileSync(join(ROOT, 'node_modules/.bin/oxlint'), args, { cwd: root, encoding: 'utf8' })
    } catch (error) {
      // It exits with 1 where it finds some.
      if (error instanceof Error && 'stdout' in error && error.stdout !== '') return String(error.stdout)
      throw error
    }
  }
  const { diagnostics } = JSON.parse(
    printed(['--allow', 'all', '--deny', rule, '--format', 'json', ...folders]),
  ) as { diagnostics: { code: string; message: string }[] }
  return diagnostics.map(({ code, message }) => {
    const lines = /\((\d+)\)/.exec(message)?.[1]
    if (!code.includes(rule) || lines === undefined) throw new Error(`oxlint: ${message}`)
    return Number(lines)
  })
}

interface Row {
  name: string
  now: number
  held: number | undefined
}

function rowsOf(now: Weight, held: Weight): Row[] {
  const rows = (place: string, figures: Figures, before: Figures | undefined): Row[] =>
    Object.entries(figures).map(([name, value]) => ({
      name: place + name,
      now: value,
      held: before?.[name],
    }))
  return [
    ...rows('', now.whole, held.whole),
    ...Object.entries(now.packages).flatMap(([name, figures]) =>
      rows(`${name}: `, figures, held.packages[name]),
    ),
  ]
}

/** Figures that have grown by more than the slack, or that are new; at the end, what to do. */
export function weightProblems(now: Weight, held: Weight): string[] {
  const grown = rowsOf(now, held)
    .filter((row) => row.held === undefined || row.now > row.held * (1 + SLACK))
    .map((row) => `${row.name}: ${row.now}, and test/weight.json holds ${row.held ?? 'no such figure'}`)
  return grown.length === 0 ? [] : [...grown, WHAT_TO_DO]
}

/** Every figure, with its difference from what is held; then a line for each package, and their sum. */
export function weightLines(now: Weight, held: Weight): string[] {
  const shown = (value: number, before: number | undefined): string => {
    const more = Math.round((value - (before ?? value)) * 10) / 10
    return more === 0 ? `${value}` : `${value} (${more < 0 ? '' : '+'}${more})`
  }
  const line = (name: string, figures: Figures, before: Figures = {}): string => {
    const cells = Object.entries(figures).map(
      ([figure, value]) => `${figure} ${shown(value, before[figure])}`,
    )
    return `${name.padEnd(25)} ${cells.map((cell) => cell.padEnd(22)).join(' ')}`.trimEnd()
  }
  const whole = Object.entries(now.whole).map(
    ([name, value]) => `${name.padEnd(42)} ${shown(value, held.whole[name])}`,
  )
  const packages = Object.entries(now.packages).map(([name, figures]) =>
    line(name, figures, held.packages[name]),
  )
  return [...whole, ...packages, line('all', sumOf(now), sumOf(held))]
}

function sumOf({ packages }: Weight): Figures {
  const sum: Figures = {}
  for (const [name, value] of Object.values(packages).flatMap((figures) => Object.entries(figures)))
    sum[name] = (sum[name] ?? 0) + value
  return sum
}
