/** The folders of a package point one way: nothing below imports anything above, also not by type. */
import { describe, expect, test } from 'vitest'

import { TABLES } from './arrow-tables.ts'
import { type FolderTable, arrowProblems, arrowsOf, readTables, tableProblems } from './arrows.ts'
import { read, repositoryFiles, type SourceFile } from './source-files.ts'

describe.each(TABLES)('the folders of $root', (table) => {
  const files = repositoryFiles()
    .filter((path) => path.startsWith(table.root))
    .map(read)
  const arrows = arrowsOf(files, table)

  test('import only what their line allows', () => expect(arrowProblems(arrows, table)).toEqual([]))

  test('have a table that leads one way, and no more in it than they need', () =>
    expect(tableProblems(arrows, table)).toEqual([]))
})

test('every package has a table', () => {
  const roots = repositoryFiles().flatMap((path) => /^(?:packages|mcp)\/[^/]+\/src\//.exec(path) ?? [])
  expect(TABLES.map(({ root }) => root).toSorted()).toEqual([...new Set(roots)].toSorted())
})

test('a table is read from text', () => {
  const text = '\nsrc/\n  low:\n  high: low ↑ main.ts\n    top\n  main.ts: high\n\nother/\n  .:\n'
  expect(readTables(text)).toEqual([
    {
      root: 'src/',
      allowed: { low: [], high: ['low'], 'main.ts': ['high'] },
      remaining: ['high → main.ts', 'high → top'],
    },
    { root: 'other/', allowed: { '.': [] }, remaining: [] },
  ])
})

describe('the rules find', () => {
  const table: FolderTable = {
    root: 'src/',
    allowed: { '.': [], low: ['.'], high: ['.', 'low'], 'main.ts': [] },
  }
  const file = (path: string, text: string): SourceFile => ({ path: `src/${path}`, text })
  const problems = (...files: SourceFile[]): string[] => arrowProblems(arrowsOf(files, table), table)

  test.each([
    ["import { a } from '../high/a.ts'"],
    ["import type { A } from '../high/deep/a.ts'"],
    ["export { a } from '../high/a.ts'"],
    ["type A = import('../high/a.ts').A"],
    ["import { main } from '../main.ts'"],
  ])('an import that is not allowed: %s', (text) => {
    const [problem, ...others] = problems(file('low/b.ts', text))
    expect(problem).toContain('low may name only .')
    expect(others).toEqual([])
  })

  test.each([
    ['high/b.ts', "import { a } from '../low/a.ts'"],
    ['high/deep/b.ts', "import { a } from '../a.ts'"],
    ['low/b.ts', "import { a } from '../types.ts'"],
    ['low/b.ts', "// import { a } from '../high/a.ts'"],
    ['low/b.ts', "import { a } from '@sandlot/shared/chat/events'"],
  ])('nothing to say of %s %s', (path, text) => expect(problems(file(path, text))).toEqual([]))

  test('a folder without a line', () =>
    expect(problems(file('new/b.ts', "import { a } from '../low/a.ts'"))[0]).toContain('has no line'))

  test('an arrow that remains, until no file needs it', () => {
    const remaining = { ...table, allowed: { '.': [], low: [], high: [] }, remaining: ['low → high'] }
    const arrows = arrowsOf([file('low/b.ts', "import { a } from '../high/a.ts'")], remaining)
    expect([...arrowProblems(arrows, remaining), ...tableProblems(arrows, remaining)]).toEqual([])
    expect(tableProblems([], remaining)).toEqual([expect.stringContaining('take it out')])
    const down = arrowsOf([file('high/b.ts', "import { a } from '../low/a.ts'")], remaining)
    expect(tableProblems(down, { ...remaining, remaining: ['high → low'] })).toEqual([
      expect.stringContaining('points down'),
    ])
  })

  test('a circle in the table itself', () => {
    const circle = { root: 'src/', allowed: { low: ['high'], high: ['low'] } }
    const arrows = arrowsOf(
      [file('low/b.ts', "import '../high/a.ts'"), file('high/a.ts', "import '../low/b.ts'")],
      circle,
    )
    expect(arrowProblems(arrows, circle)).toEqual([])
    expect(tableProblems(arrows, circle)).toEqual([expect.stringContaining('high must stand above low')])
  })

  test('an arrow that no file needs', () =>
    expect(tableProblems([], { root: 'src/', allowed: { low: [], high: ['low'] } })).toHaveLength(1))
})
