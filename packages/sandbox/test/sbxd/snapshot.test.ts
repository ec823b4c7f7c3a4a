/** The bounds of a snapshot of the workspace. The contract of files has what it says. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'
import { oneRunOfThree } from '../../../../test/campaign.ts'

import type { ConnectedSandbox } from '../../src/sbxd/client.ts'
import { buildSbxd } from '../support/build-sbxd.ts'
import { type BackendFixture, Bench } from '../contract/harness.ts'
import { localProcessFixture } from '../support/local-process-fixture.ts'

let fixture: BackendFixture
let sandbox: ConnectedSandbox
beforeAll(async () => {
  fixture = await localProcessFixture(buildSbxd)
  sandbox = (await Bench.start(fixture)).sandbox
}, 120_000)
afterAll(() => fixture.dispose(), 60_000)

const touch = async (folder: string, count: number): Promise<void> => {
  await mkdir(join(sandbox.workspace, folder), { recursive: true })
  for (let n = 0; n < count; n++) await writeFile(join(sandbox.workspace, folder, `${n}`), '')
}

test('20,000 files are looked at and compared quickly, and more than 50,000 are refused', async ({
  skip,
}) => {
  oneRunOfThree('20,000 files', skip)
  for (let n = 0; n < 200; n++) await touch(`a/${n % 20}/${n}`, 100)
  const began = performance.now()
  const snapshot = await sandbox.files.snapshot()
  const seen = performance.now()
  await touch('a/0/0', 3)
  const compared = performance.now()
  const { files } = await snapshot.changes()
  console.log(
    `20,000 files: ${Math.round(seen - began)} ms to look, ${Math.round(performance.now() - compared)} ms to compare`,
  )
  expect(snapshot.files).toBe(20_000)
  expect(files.map(({ path }) => path)).toEqual(['a/0/0/0', 'a/0/0/1', 'a/0/0/2'])
  expect(seen - began, 'far more than it takes on a busy machine').toBeLessThan(3_000)

  const before = await sandbox.files.snapshot()
  await touch('b', 30_001)
  const tooMany = { code: 'too_large', message: 'The workspace has too many files' }
  await expect(before.changes()).rejects.toMatchObject(tooMany)
  await expect(sandbox.files.snapshot()).rejects.toMatchObject(tooMany)
}, 60_000)
