import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agentStatus } from '@sandlot/shared/acp-meta'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeStatus } from '../../src/acp/status.ts'
import { createDemoModel } from '../../src/model/demo/demo.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-status-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('how the larger image of the sandboxes stands is said while there is something to say', async () => {
  const file = join(folder, 'full-image.json')
  const status = makeStatus({
    models: { model: createDemoModel() },
    defaultMode: 'auto-edit',
    toolsEnabled: true,
    probeSandboxes: () => Promise.resolve({ ok: true, message: 'fine' }),
    storeProblem: () => Promise.resolve(undefined),
    fullImageFile: file,
  })
  const said = async () => {
    const { fullImage, reasons } = agentStatus.parse(await status())
    return [fullImage?.state, reasons.find(({ part }) => part === 'sandbox-full')?.ok]
  }
  expect(await said()).toEqual([undefined, undefined])
  writeFileSync(file, '{"state":"building"}')
  expect(await said()).toEqual(['building', true])
  writeFileSync(file, '{"state":"failed"}')
  expect(await said()).toEqual(['failed', false])
  // Being written just now, or by another version.
  writeFileSync(file, '{"sta')
  expect(await said()).toEqual([undefined, undefined])
})
