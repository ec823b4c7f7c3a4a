import { z } from 'zod'

/** Counts of one runner, or of all of them together. */
export interface Counts {
  passed: number
  failed: number
  skipped: number
}

/** What we read of vitest's JSON report. */
const report = z.object({
  numPassedTests: z.int().nonnegative(),
  numFailedTests: z.int().nonnegative(),
  numPendingTests: z.int().nonnegative(),
  numTodoTests: z.int().nonnegative(),
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      assertionResults: z.array(z.object({ status: z.string() })),
    }),
  ),
})

/**
 * The counts of one vitest run, from its report (undefined: it wrote none) and its exit code. A file that failed
 * without a failed test in it (it could not be imported, a hook threw) is one failure; so is a run that ended badly
 * though nothing in it failed, for example by an unhandled rejection, or because it found no test.
 */
export function countVitest(json: string | undefined, exitCode: number): Counts {
  const parsed = json === undefined ? undefined : report.safeParse(parseJson(json))
  if (parsed?.success !== true) return { passed: 0, failed: 1, skipped: 0 }
  const { data } = parsed
  const brokenFiles = data.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed'),
  ).length
  const failed = data.numFailedTests + brokenFiles
  const skipped = data.numPendingTests + data.numTodoTests
  const nothingRan = data.numPassedTests + failed === 0
  return {
    passed: data.numPassedTests,
    failed: failed === 0 && (exitCode !== 0 || nothingRan) ? 1 : failed,
    skipped,
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // cut off: the runner died while writing
  }
}

/** A check that is one thing, such as the lint: passed or failed by its exit code. */
export function countCheck(exitCode: number): Counts {
  return exitCode === 0 ? { passed: 1, failed: 0, skipped: 0 } : { passed: 0, failed: 1, skipped: 0 }
}

export function sum(counts: Counts[]): Counts {
  return counts.reduce(
    (all, one) => ({
      passed: all.passed + one.passed,
      failed: all.failed + one.failed,
      skipped: all.skipped + one.skipped,
    }),
    { passed: 0, failed: 0, skipped: 0 },
  )
}

/** `3 passed, 0 failed`, and `, 1 skipped` where some were. */
export function closingLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`
}
