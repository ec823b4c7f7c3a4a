/** Cycles of files: in TypeScript by an import, of a type as well; in C by the names that a .c file uses of another one. */
import { posix } from 'node:path'
import { specifiers } from './import-rules.ts'
import { namesOf, ROOT as SBXD } from './sbxd-includes.ts'
import type { SourceFile } from './source-files.ts'

/** Each file with those that it names. */
export type Graph = ReadonlyMap<string, readonly string[]>

/** The sources of all packages. Between packages the directions leave no cycle. */
export function importGraph(files: readonly SourceFile[]): Graph {
  const sources = files.filter(({ path }) => /^(packages|mcp)\/[^/]+\/src\/.*\.tsx?$/.test(path))
  return new Map(
    sources.map(({ path, text }) => [
      path,
      specifiers(text)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => posix.join(posix.dirname(path), specifier)),
    ]),
  )
}

/** The .c files of sbxd. A folder's one header belongs to all of its files. */
export function sbxdGraph(files: readonly SourceFile[]): Graph {
  const sources = files.filter(({ path }) => path.startsWith(SBXD) && path.endsWith('.c'))
  const found = Map.groupBy(
    namesOf(sources).filter(({ target }) => target.endsWith('.c')),
    ({ file }) => file,
  )
  return new Map(sources.map(({ path }) => [path, (found.get(path) ?? []).map(({ target }) => target)]))
}

/** The strongly connected components of more than one file, each in order (Tarjan). */
export function cyclesOf(graph: Graph): string[][] {
  const order = new Map<string, number>()
  const open: string[] = []
  const closed = new Set<string>()
  const cycles: string[][] = []
  /** The earliest open file that `file` leads to. */
  const visit = (file: string): number => {
    const mine = order.size
    order.set(file, mine)
    open.push(file)
    let earliest = mine
    for (const next of graph.get(file) ?? []) {
      if (!graph.has(next) || closed.has(next)) continue
      earliest = Math.min(earliest, order.get(next) ?? visit(next))
    }
    if (earliest < mine) return earliest
    const cycle = open.splice(open.lastIndexOf(file))
    for (const one of cycle) closed.add(one)
    if (cycle.length > 1) cycles.push(cycle.toSorted())
    return earliest
  }
  for (const file of graph.keys()) if (!order.has(file)) visit(file)
  return cycles
}

/** Cycles that are new or have grown, and lines of the list that are longer than what is there. */
export function cycleProblems(
  cycles: readonly (readonly string[])[],
  listed: readonly (readonly string[])[],
): string[] {
  const grown = cycles
    .filter((cycle) => !listed.some((known) => cycle.every((file) => known.includes(file))))
    .map(
      (cycle) =>
        `${cycle.join(', ')}: each leads to the others; move the name that closes the cycle to where both may see it, ` +
        `or hand it in as an argument`,
    )
  const shrunk = listed.flatMap((known) => {
    const left = cycles.filter((cycle) => cycle.every((file) => known.includes(file)))
    const only = left.length === 1 ? left[0] : undefined
    if (only?.length === known.length) return []
    return [
      `${known.join(', ')}: ${left.length === 0 ? 'no cycle any more' : `only ${left.map((cycle) => cycle.join(', ')).join('; ')}`}; ` +
        `shorten the list in test/file-cycles.test.ts`,
    ]
  })
  return [...grown, ...shrunk]
}
