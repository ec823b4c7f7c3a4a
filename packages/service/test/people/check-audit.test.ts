/** Findings of `./sandlot doctor` about the audit logs, as a process of its own. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { auditChains } from '@sandlot/shared/admin/audit'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { setUp, startHarness } from '../support/harness.ts'
import type { Harness } from '../support/harness.ts'

let harness: Harness
beforeEach(async () => {
  harness = await startHarness()
})
afterEach(async () => {
  await harness.close()
})

test('a line that somebody changed by hand is named, beside a running Sandlot', async () => {
  await setUp(harness)
  expect(await problems()).toEqual({ agent: [], service: [] })
  const file = new DatabaseSync(join(harness.folder, 'accounts.db'))
  file.exec("update audit set who_name = 'Mallory' where seq = 2")
  file.close()
  const found = await problems()
  expect(found['agent']).toEqual([])
  expect(found['service']).toEqual([expect.stringMatching(/^Line 2 of .* was changed or put in by hand\.$/)])
})

async function problems(): Promise<Record<string, string[]>> {
  const program = join(import.meta.dirname, '../../src/people/check-audit.ts')
  const { stdout } = await promisify(execFile)(process.execPath, ['--conditions=sandlot-source', program], {
    env: { PATH: process.env['PATH'], SANDLOT_DATA: harness.folder },
  })
  const { chains } = auditChains.parse(JSON.parse(stdout))
  return Object.fromEntries(chains.map(({ source, problems }) => [source, problems]))
}
