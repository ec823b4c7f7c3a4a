/** New folders of tests, which are removed again. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, onTestFinished } from 'vitest'

/** Until the end of the test, after its hooks. In a test or in `beforeEach`. */
export function testFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `sandlot-${name}-`))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Until the end of the tests of a file or a `describe`. Outside of both tests and hooks. */
export function fileFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `sandlot-${name}-`))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
