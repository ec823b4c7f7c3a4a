import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  closingLine,
  closingLines,
  countCheck,
  type Counts,
  countVitest,
  failedFiles,
  failureLines,
  readVitestRun,
  secondTry,
  skipLines,
  sum,
} from '../../src/testing/summary.ts'

type States = ('passed' | 'failed' | 'skipped' | 'pending')[]

const report = (...files: { name?: string; tests: States; errors?: string[] }[]): string =>
  JSON.stringify({
    files: files.map(({ name, tests, errors }, index) => ({
      file: name ?? `file ${index}`,
      tests: tests.map((state, at) => ({ name: `test ${at}`, state })),
      errors: errors ?? [],
    })),
    errors: [],
  })

const count = (json: string | undefined, exitCode: number): Counts =>
  countVitest(readVitestRun(json, exitCode))

describe('counting test results', () => {
  test('tests of one vitest run', () => {
    const json = report(
      { tests: ['passed', 'failed', 'skipped'] },
      { tests: ['passed', 'pending', 'passed'] },
    )
    expect(count(json, 1)).toEqual({ passed: 3, failed: 1, skipped: 2 })
  })

  test('a file that could not be loaded is a failure', () => {
    const json = report({ tests: [], errors: ['Error: no such file'] }, { tests: ['passed'] })
    expect(count(json, 1)).toEqual({ passed: 1, failed: 1, skipped: 0 })
  })

  test('what threw outside of every test is a failure each', () => {
    const json = JSON.stringify({
      files: [{ file: 'a', tests: [{ name: 'x', state: 'passed' }], errors: [] }],
      errors: ['Error: late\n  at a.ts:1', 'Error: later'],
    })
    expect(count(json, 1)).toEqual({ passed: 1, failed: 2, skipped: 0 })
    expect(failureLines(readVitestRun(json, 1))).toEqual([
      'failed outside of the tests: Error: late',
      'failed outside of the tests: Error: later',
    ])
  })

  test('a bad end without a failed test is a failure', () => {
    expect(count(report({ tests: ['passed'] }), 1)).toEqual({ passed: 1, failed: 1, skipped: 0 })
  })

  test('a run in which nothing ran is a failure, whatever it says', () => {
    expect(count(report(), 0)).toEqual({ passed: 0, failed: 1, skipped: 0 })
    expect(count(report({ tests: ['skipped'] }), 0)).toEqual({ passed: 0, failed: 1, skipped: 1 })
  })

  test.each([
    ['no report', undefined],
    ['half a report', '{"files": ['],
    ['another report', '{"success": true}'],
  ])('%s is a failure', (_, json) => {
    expect(count(json, 0)).toEqual({ passed: 0, failed: 1, skipped: 0 })
  })

  test('a second try takes the place of what failed, and nothing else', () => {
    const first = readVitestRun(
      report({ name: 'a', tests: ['passed', 'failed'] }, { name: 'b', tests: ['passed'] }),
      1,
    )
    expect(failedFiles(first)).toEqual(['a'])
    const again = (...tests: States): Counts =>
      countVitest(
        secondTry(first, readVitestRun(report({ name: 'a', tests }), tests.includes('failed') ? 1 : 0)),
      )
    expect(again('passed', 'passed')).toEqual({ passed: 3, failed: 0, skipped: 0 })
    expect(again('failed', 'passed')).toEqual({ passed: 2, failed: 1, skipped: 0 })
    // A second run that wrote no report leaves the failure where it was.
    expect(countVitest(secondTry(first, readVitestRun(undefined, 1))).failed).toBe(2)
  })

  test('each failure is a line with its file, its name and what it threw first', () => {
    const run = readVitestRun(
      JSON.stringify({
        files: [
          {
            file: 'a.test.ts',
            tests: [
              { name: 'a sum > is right', state: 'failed', error: 'Error: 1 is not 2\n    at a.test.ts:3' },
              { name: 'a sum > is there', state: 'passed' },
            ],
            errors: [],
          },
          { file: 'b.test.ts', tests: [], errors: ['Error: no such file\nat …'] },
        ],
        errors: [],
      }),
      1,
    )
    expect(failureLines(run)).toEqual([
      'failed a.test.ts > a sum > is right: Error: 1 is not 2',
      'failed b.test.ts > Error: no such file',
    ])
    expect(failureLines(readVitestRun(undefined, 1))).toEqual([
      'failed outside of the tests: it wrote no report',
    ])
  })

  test('each skip is a line with its file, its name and its reason', () => {
    const tests = [
      { name: 'a sum > is right', state: 'skipped', note: 'only in a full run' },
      { name: 'a sum > of fractions (needs ripgrep)', state: 'skipped' },
      { name: 'a sum > is there', state: 'passed' },
    ]
    const run = readVitestRun(
      JSON.stringify({ files: [{ file: 'a.test.ts', tests, errors: [] }], errors: [] }),
      0,
    )
    expect(skipLines(run)).toEqual([
      'skipped a.test.ts > a sum > is right: only in a full run',
      'skipped a.test.ts > a sum > of fractions (needs ripgrep)',
    ])
  })

  test('a check is one test', () => {
    expect(countCheck(0)).toEqual({ passed: 1, failed: 0, skipped: 0 })
    expect(countCheck(2)).toEqual({ passed: 0, failed: 1, skipped: 0 })
  })

  test('the closing line', () => {
    expect(closingLine(sum([countCheck(0), { passed: 20, failed: 0, skipped: 0 }]))).toBe(
      '21 passed, 0 failed',
    )
    expect(closingLine({ passed: 1, failed: 2, skipped: 3 })).toBe('1 passed, 2 failed, 3 skipped')
  })

  test('a file that passed only on the second try is named, and counted in the line before the last', () => {
    const total = { passed: 2, failed: 0, skipped: 0 }
    expect(closingLines([], [], total)).toEqual(['unsteady: 0', '2 passed, 0 failed'])
    expect(closingLines(['failed c.test.ts > x'], ['a.test.ts', 'b.test.ts'], total)).toEqual([
      'failed c.test.ts > x',
      'unsteady a.test.ts: failed once, passed alone',
      'unsteady b.test.ts: failed once, passed alone',
      'unsteady: 2',
      '2 passed, 0 failed',
    ])
  })

  test('no failure is lost in the sum', () => {
    const counts = fc.record({ passed: fc.nat(), failed: fc.nat(), skipped: fc.nat() })
    fc.assert(
      fc.property(fc.array(counts), (all) => {
        expect(sum(all).failed > 0).toBe(all.some(({ failed }) => failed > 0))
      }),
    )
  })
})
