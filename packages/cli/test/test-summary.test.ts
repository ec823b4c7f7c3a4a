import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { closingLine, countCheck, countVitest, sum } from '../src/test-summary.ts'

const report = (
  counts: { passed?: number; failed?: number; pending?: number; todo?: number },
  files: { status: string; tests: string[] }[] = [],
): string =>
  JSON.stringify({
    numPassedTests: counts.passed ?? 0,
    numFailedTests: counts.failed ?? 0,
    numPendingTests: counts.pending ?? 0,
    numTodoTests: counts.todo ?? 0,
    testResults: files.map(({ status, tests }, index) => ({
      name: `file ${index}`,
      status,
      assertionResults: tests.map((one) => ({ status: one })),
    })),
  })

describe('counting test results', () => {
  test('tests of one vitest run', () => {
    const json = report({ passed: 7, failed: 2, pending: 1, todo: 1 }, [
      { status: 'failed', tests: ['failed', 'failed'] },
    ])
    expect(countVitest(json, 1)).toEqual({ passed: 7, failed: 2, skipped: 2 })
  })

  test('a file that could not be loaded is a failure', () => {
    const json = report({ passed: 3 }, [
      { status: 'failed', tests: [] },
      { status: 'passed', tests: ['passed'] },
    ])
    expect(countVitest(json, 1)).toEqual({ passed: 3, failed: 1, skipped: 0 })
  })

  test('a bad end without a failed test is a failure', () => {
    expect(countVitest(report({ passed: 3 }), 1)).toEqual({ passed: 3, failed: 1, skipped: 0 })
  })

  test('a run in which nothing ran is a failure, whatever it says', () => {
    expect(countVitest(report({}), 0)).toEqual({ passed: 0, failed: 1, skipped: 0 })
    expect(countVitest(report({ pending: 4 }), 0)).toEqual({ passed: 0, failed: 1, skipped: 4 })
  })

  test.each([
    ['no report', undefined],
    ['half a report', '{"numPassedTests": 3'],
    ['another report', '{"success": true}'],
  ])('%s is a failure', (_, json) => {
    expect(countVitest(json, 0)).toEqual({ passed: 0, failed: 1, skipped: 0 })
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

  test('no failure is lost in the sum', () => {
    const counts = fc.record({ passed: fc.nat(), failed: fc.nat(), skipped: fc.nat() })
    fc.assert(
      fc.property(fc.array(counts), (all) => {
        expect(sum(all).failed > 0).toBe(all.some(({ failed }) => failed > 0))
      }),
    )
  })
})
