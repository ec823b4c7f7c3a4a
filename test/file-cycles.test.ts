import { describe, expect, test } from 'vitest'
import { cycleProblems, cyclesOf, importGraph, sbxdGraph } from './file-cycles.ts'
import { read, repositoryFiles, type SourceFile } from './source-files.ts'

/** The cycles that are left, each with its root: this list may only become shorter. */
const LISTED = `
docker/sandbox/src/ commands/attach.c commands/commands.c commands/end.c commands/exit.c commands/options.c
  commands/output.c commands/remembered.c commands/request.c commands/spool.c commands/start.c
  commands/streams.c commands/sweep.c commands/terminal.c
`
  .trim()
  .split(/\n(?=\S)/)
  .map((line) => line.split(/\s+/))
  .map(([root = '', ...files]) => files.map((file) => root + file))

describe('the files of all packages and of sbxd', () => {
  const files = repositoryFiles()
    .filter((path) => /\.(tsx?|c)$/.test(path))
    .map(read)
  const graphs = [importGraph(files), sbxdGraph(files)]

  test('are seen by this rule', () => {
    for (const graph of graphs) expect([...graph.values()].flat().length).toBeGreaterThan(graph.size)
  })

  test('have no cycle beside those that are listed', () =>
    expect(cycleProblems(graphs.flatMap(cyclesOf), LISTED)).toEqual([]))
})

describe('the rule finds', () => {
  const source = (name: string, text: string): SourceFile => ({ path: `packages/a/src/${name}`, text })

  test('a cycle of imports, also of types and over three files, and no file beside it', () => {
    const graph = importGraph([
      source('main.ts', "import { one } from './one.ts'"),
      source('one.ts', "import type { Two } from './deep/two.ts'\nimport { four } from './four.ts'"),
      source('deep/two.ts', "export { three } from '../three.ts'"),
      source('three.ts', "type One = import('./one.ts').One"),
      source('four.ts', "// import { one } from './one.ts'"),
    ])
    expect(cyclesOf(graph)).toEqual([
      ['packages/a/src/deep/two.ts', 'packages/a/src/one.ts', 'packages/a/src/three.ts'],
    ])
  })

  test('two cycles of which one leads to the other', () => {
    const graph = new Map([
      ['a', ['b', 'c']],
      ['b', ['a']],
      ['c', ['d']],
      ['d', ['c']],
    ])
    expect(cyclesOf(graph)).toEqual([
      ['c', 'd'],
      ['a', 'b'],
    ])
  })

  test('a cycle in C, by calls and by variables', () => {
    const c = (name: string, text: string): SourceFile => ({ path: `docker/sandbox/src/disk/${name}`, text })
    const graph = sbxdGraph([
      c('disk.h', 'void one(void);\n'),
      c('one.c', '#include "disk.h"\nint seen[2];\nvoid one(void)\n{\n  two();\n}\n'),
      c('two.c', '#include "disk.h"\nextern int seen[2];\nvoid two(void)\n{\n}\n'),
    ])
    expect(cyclesOf(graph)).toEqual([['docker/sandbox/src/disk/one.c', 'docker/sandbox/src/disk/two.c']])
  })

  test('what has grown, and what the list need not have any more', () => {
    expect(cycleProblems([['a', 'b']], [['a', 'b']])).toEqual([])
    expect(cycleProblems([['a', 'b']], [])).toEqual([expect.stringContaining('a, b: each leads')])
    expect(cycleProblems([], [['a', 'b']])).toEqual([expect.stringContaining('no cycle any more')])
    expect(cycleProblems([['a', 'b']], [['a', 'b', 'c']])).toEqual([
      expect.stringContaining('only a, b; shorten the list'),
    ])
    expect(cycleProblems([['a', 'b', 'c']], [['a', 'b']])).toHaveLength(2)
  })
})
