import { z } from 'zod'
import { parseJson } from '@sandlot/shared/base/json'

export interface Counts {
  passed: number
  failed: number
  skipped: number
}

/** Written by `reporter.ts` for one vitest run. */
const report = z.object({
  files: z.array(
    z.object({
      file: z.string(),
      tests: z.array(
        z.object({
          name: z.string(),
          state: z.string(),
          error: z.string().optional(),
          /** The reason of a skip. */
          note: z.string().optional(),
        }),
      ),
      /** Failures outside of its tests: an import, a hook. */
      errors: z.array(z.string()),
    }),
  ),
  /** Failures outside of every file: an unhandled rejection, a worker that crashed. */
  errors: z.array(z.string()),
})
export type Report = z.infer<typeof report>

interface FileResult extends Counts {
  /** A line for each failure: the test's full name and the first line of what it threw. */
  failures: readonly string[]
  /** A line for each skipped test: its full name, and the reason that its title does not have. */
  skips: readonly string[]
}

export interface VitestRun {
  /** Results by absolute path. */
  files: ReadonlyMap<string, FileResult>
  /** A line for each failure outside of every file; one is enough for a failed run. */
  errors: readonly string[]
}

/**
 * Parses the report of a run. A file without a failed test that failed to import, or in a hook,
 * counts as one failure.
 */
export function readVitestRun(json: string | undefined, exitCode: number): VitestRun {
  const parsed = json === undefined ? undefined : report.safeParse(parseJson(json))
  if (parsed?.success !== true) return { files: new Map(), errors: ['it wrote no report'] }
  const files = new Map(parsed.data.files.map((file) => [file.file, countFile(file)]))
  const errors = parsed.data.errors.map(firstLine)
  const { passed, failed } = sum([...files.values()])
  if (failed + errors.length === 0 && exitCode !== 0) errors.push(`it ended with exit code ${exitCode}`)
  if (failed + errors.length === 0 && passed === 0) errors.push('it ran no test')
  return { files, errors }
}

function countFile({ tests, errors }: Report['files'][number]): FileResult {
  const skipped = tests.filter(({ state }) => state === 'skipped' || state === 'pending')
  const failures = tests
    .filter(({ state }) => state === 'failed')
    .map(({ name, error }) => (error === undefined ? name : `${name}: ${firstLine(error)}`))
  if (failures.length === 0) failures.push(...errors.slice(0, 1).map(firstLine))
  return {
    passed: tests.filter(({ state }) => state === 'passed').length,
    failed: failures.length,
    skipped: skipped.length,
    failures,
    skips: skipped.map(({ name, note }) => (note === undefined ? name : `${name}: ${note}`)),
  }
}

const firstLine = (text: string): string => text.trim().split('\n', 1)[0] ?? ''

export function failedFiles(run: VitestRun): string[] {
  return [...run.files].filter(([, { failed }]) => failed > 0).map(([name]) => name)
}

/** The first run, with the files of the second replaced. */
export function secondTry(first: VitestRun, second: VitestRun): VitestRun {
  return {
    files: new Map([...first.files, ...second.files]),
    errors: [...first.errors, ...second.errors],
  }
}

/** A line for each failure of a run, so that the end of a long output says what failed. */
export function failureLines(run: VitestRun): string[] {
  const ofFiles = [...run.files].flatMap(([file, { failures }]) =>
    failures.map((failure) => `failed ${file} > ${failure}`),
  )
  return [...ofFiles, ...run.errors.map((error) => `failed outside of the tests: ${error}`)]
}

/** A line for each skipped test: an ordinary run says what only `--full` covers. */
export function skipLines(run: VitestRun): string[] {
  return [...run.files].flatMap(([file, { skips }]) => skips.map((skip) => `skipped ${file} > ${skip}`))
}

/** All files, and failures outside of them. */
export function countVitest(run: VitestRun): Counts {
  return sum([...run.files.values(), { passed: 0, failed: run.errors.length, skipped: 0 }])
}

/** A check, such as the lint, counts as one test. */
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

/** `3 passed, 0 failed`, and perhaps `, 1 skipped`. */
export function closingLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`
}

/** Failures, files that failed once and passed alone, their number, and the counts of all tests. */
export function closingLines(
  failures: readonly string[],
  unsteady: readonly string[],
  total: Counts,
): string[] {
  return [
    ...failures,
    ...unsteady.map((file) => `unsteady ${file}: failed once, passed alone`),
    `unsteady: ${unsteady.length}`,
    closingLine(total),
  ]
}
