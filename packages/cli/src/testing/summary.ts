import { z } from 'zod'

/** Counts of one runner, or of all of them together. */
export interface Counts {
  passed: number
  failed: number
  skipped: number
}

/** What we read of vitest's JSON report. */
const report = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      assertionResults: z.array(z.object({ status: z.string() })),
    }),
  ),
})

/** One vitest run: what each of its files came to, by the file's absolute path. */
export interface VitestRun {
  files: ReadonlyMap<string, Counts>
  /**
   * It ended badly though no file failed: an unhandled rejection, no test found, no report written.
   */
  broken: boolean
}

/**
 * One vitest run, from its report (undefined: it wrote none) and its exit code. A file that failed
 * without a failed test in it (it could not be imported, a hook threw) is one failure.
 */
export function readVitestRun(json: string | undefined, exitCode: number): VitestRun {
  const parsed = json === undefined ? undefined : report.safeParse(parseJson(json))
  if (parsed?.success !== true) return { files: new Map(), broken: true }
  const files = new Map(parsed.data.testResults.map((file) => [file.name, countFile(file)]))
  const { passed, failed } = sum([...files.values()])
  return { files, broken: failed === 0 && (exitCode !== 0 || passed === 0) }
}

function countFile(file: { status: string; assertionResults: { status: string }[] }): Counts {
  const count = (...statuses: string[]): number =>
    file.assertionResults.filter(({ status }) => statuses.includes(status)).length
  const failed = count('failed')
  return {
    passed: count('passed'),
    failed: failed === 0 && file.status === 'failed' ? 1 : failed,
    skipped: count('pending', 'todo', 'skipped', 'disabled'),
  }
}

/** The files with a failure. */
export function failedFiles(run: VitestRun): string[] {
  return [...run.files].filter(([, { failed }]) => failed > 0).map(([name]) => name)
}

/** The first run with the files of a second one in their place. */
export function secondTry(first: VitestRun, second: VitestRun): VitestRun {
  return {
    files: new Map([...first.files, ...second.files]),
    broken: first.broken || second.broken,
  }
}

/** All files together; a run that ended badly is one failure more. */
export function countVitest(run: VitestRun): Counts {
  const counts = sum([...run.files.values()])
  return run.broken ? { ...counts, failed: counts.failed + 1 } : counts
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

/**
 * The last lines of a run: a line for every file that failed once and passed alone, how many those
 * are, and the counts of all tests.
 */
export function closingLines(unsteady: readonly string[], total: Counts): string[] {
  return [
    ...unsteady.map((file) => `unsteady ${file}: failed once, passed alone`),
    `unsteady: ${unsteady.length}`,
    closingLine(total),
  ]
}
