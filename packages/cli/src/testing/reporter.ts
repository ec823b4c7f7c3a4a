import { writeFileSync } from 'node:fs'
import { env } from 'node:process'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'
import type { Report } from './summary.ts'

/**
 * Writes the result of a run as JSON to the file SANDLOT_TEST_REPORT. Unlike vitest's own JSON it
 * has errors outside of every test file, which fail a run as well.
 */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const report: Report = { files: modules.map(fileReport), errors: unhandledErrors.map(errorText) }
    writeFileSync(env['SANDLOT_TEST_REPORT'] ?? '/dev/null', JSON.stringify(report))
  }
}

function fileReport(module: TestModule): Report['files'][number] {
  const suites = [...module.children.allSuites()]
  return {
    file: module.moduleId,
    tests: [...module.children.allTests()].map((one) => {
      const result = one.result()
      const [error] = result.errors ?? []
      const note = result.state === 'skipped' ? result.note : undefined
      return { name: one.fullName, state: result.state, error: error && errorText(error), note }
    }),
    errors: [...module.errors(), ...suites.flatMap((suite) => suite.errors())].map(errorText),
  }
}

function errorText(error: { name?: string; message: string; stack?: string }): string {
  return `${error.name ?? 'Error'}: ${error.message}\n${error.stack ?? ''}`
}
