import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { SourceFile } from './source-files.ts'
import { countLongFunctions, weigh, type Weight, weightLines, weightProblems } from './weight.ts'

const file = (path: string, text: string): SourceFile => ({ path, text })
/** The places that have to be there. */
const PLACES = [
  file('docs/settings.md', '- `SANDLOT_DATA`: folder\n- `SANDLOT_CONFIG`: file\n'),
  file('packages/shared/src/acp/meta.ts', "  a: '_sandlot/approve',\n"),
  file(
    'packages/shared/src/chat/actions.ts',
    "  a: { route: 'GET /api/a' },\n  b: { route: 'POST /api/a' },\n  c: { route: 'GET /api/b' },\n",
  ),
]
const table = { root: 'src/', allowed: { low: [], high: ['low'] }, remaining: ['low → high'] }
const weightOf = (...files: SourceFile[]): Weight => weigh([...PLACES, ...files], [table], 3)

describe('the weight', () => {
  test('has lines of source and of tests, and files, of each package', () => {
    const { packages, whole } = weightOf(
      file('packages/a/src/one.ts', 'one\ntwo\n'),
      file('packages/a/src/one.css', 'one\n'),
      file('packages/a/bench/one.ts', 'one\n'),
      file('packages/a/test/one.test.ts', 'one\ntwo\nthree\n'),
      file('packages/a/README.md', 'one\n'),
      file('docker/sandbox/src/one.c', 'one\n'),
      file('test/one.test.ts', 'one\ntwo\nthree\n'),
      file('docs/one.md', '# Two words\n'),
    )
    expect(packages).toMatchObject({
      'docker/sandbox': { source: 1, tests: 0, files: 1 },
      'packages/a': { source: 3, tests: 4, files: 2 },
      test: { source: 0, tests: 3, files: 0 },
    })
    expect(whole).toMatchObject({
      'TypeScript in src, lines': 6,
      'TypeScript of tests and bench, lines': 7,
      'words of docs': 9,
    })
  })

  test('has what is in tables', () => {
    const tables = "db.createTable('one')\ndb.createTable('two').createTable('one')\n"
    expect(weightOf(file('packages/a/src/tables.ts', tables)).whole).toMatchObject({
      rooms: 2,
      arrows: 2,
      'upward arrows': 1,
      'functions over 60 lines': 3,
      settings: 2,
      routes: 3,
      tables: 2,
      'agent methods': 1,
    })
  })

  test('has no figure of a place that is not there', () =>
    expect(() => weigh(PLACES.slice(1), [table], 0)).toThrow('settings'))

  test('has the share of dialect: how a comment begins, and words, of its lines', () => {
    const text = [
      '/**',
      ' * What it is.',
      ' * Of a second line the beginning does not count, but it is told once more.',
      ' */',
      "const a = 'What' // How a comment behind code begins.",
      '',
      '// A plain line.',
      '/* Anew. */',
      "const url = 'http://meanwhile'",
    ].join('\n')
    const { whole } = weightOf(
      file('packages/a/src/one.ts', text),
      file('packages/a/src/two.ts', '// Plain.\n'),
    )
    expect(whole).toMatchObject({
      'comment lines in dialect, %': 66.7,
      'headers that begin with What, Who, How …': 1,
    })
  })
})

test('functions over 60 lines are found, in TypeScript and in C', () => {
  const root = mkdtempSync(join(tmpdir(), 'sandlot-weight-'))
  try {
    const body = (lines: number): string => `export function f${lines}() {\n${'  f()\n'.repeat(lines - 2)}}\n`
    const ts = file('packages/a/src/one.ts', body(60) + body(61) + body(200))
    mkdirSync(join(root, 'packages/a/src'), { recursive: true })
    writeFileSync(join(root, ts.path), ts.text)
    const c = (lines: number): SourceFile =>
      file('docker/sandbox/src/one.c', `int f(void)\n{\n${'  f();\n'.repeat(lines - 2)}}\n`)
    expect(countLongFunctions([ts, c(60)], root)).toBe(2)
    expect(countLongFunctions([ts, c(61)], root)).toBe(3)
  } finally {
    rmSync(root, { recursive: true })
  }
})

describe('the ratchet', () => {
  const weight = (routes: number, source: number): Weight => ({
    whole: { routes },
    packages: { 'packages/a': { source, tests: 7, files: 1 } },
  })

  test('lets a figure grow by one in a hundred', () => {
    expect(weightProblems(weight(10, 1_010), weight(10, 1_000))).toEqual([])
    expect(weightProblems(weight(10, 1_011), weight(10, 1_000))).toEqual([
      'packages/a: source: 1011, and test/weight.json holds 1000',
      expect.stringMatching(/--write.*reason/),
    ])
    expect(weightProblems(weight(11, 1_000), weight(10, 1_000))[0]).toContain('routes: 11')
    expect(weightProblems(weight(1, 1), weight(10, 1_000))).toEqual([])
  })

  test('asks for what is not held yet', () =>
    expect(weightProblems(weight(1, 1), { ...weight(1, 1), packages: {} })).toHaveLength(4))

  test('shows every figure, with what it differs by', () => {
    expect(
      weightLines(weight(11, 1_000), weight(10, 1_200)).map((line) => line.replaceAll(/ +/g, ' ')),
    ).toEqual([
      'routes 11 (+1)',
      'packages/a source 1000 (-200) tests 7 files 1',
      'all source 1000 (-200) tests 7 files 1',
    ])
  })
})
