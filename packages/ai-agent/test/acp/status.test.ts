import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agentStatus } from '@sandlot/shared/acp/meta'
import { beforeEach, expect, test } from 'vitest'
import { makeStatus } from '../../src/acp/status.ts'
import { ModelHealth } from '../../src/metrics/model-health.ts'
import { createDemoModel } from '../../src/model/demo/demo.ts'
import { testFolder } from '../../../../test/folders.ts'

let folder: string
beforeEach(() => void (folder = testFolder('status')))

function statusWith(parts: Partial<Parameters<typeof makeStatus>[0]>) {
  return makeStatus({
    models: { model: createDemoModel() },
    defaultMode: 'auto-edit',
    toolsEnabled: true,
    probeSandboxes: () => Promise.resolve({ ok: true, message: 'fine' }),
    storeProblem: () => Promise.resolve(undefined),
    modelReasons: () => [],
    freeBytes: () => 10 * 1024 ** 3,
    fullImageFile: join(folder, 'none'),
    ...parts,
  })
}

test('the demo has neither a key nor a provider to say something of, whatever it answered', async () => {
  const health = new ModelHealth()
  const model = createDemoModel()
  health.served(model.name)
  const status = statusWith({ models: { model }, modelReasons: (names) => health.reasons(names) })
  const parts = (await status()).reasons.map(({ part }) => part)
  expect(parts).toContain('model')
  expect(parts).not.toContain('model-key')
  expect(parts).not.toContain('provider')
})

test('how the larger image of the sandboxes stands is said while there is something to say', async () => {
  const file = join(folder, 'full-image.json')
  const status = statusWith({ fullImageFile: file })
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

test('a disk is nearly full below two GiB, and has room again only with a quarter more', async () => {
  let free = 3
  const status = statusWith({
    freeBytes: () => {
      if (free < 0) throw new Error('EIO')
      return free * 1024 ** 3
    },
  })
  const said = async (gib: number) => {
    free = gib
    const { ready, reasons } = await status()
    expect(ready).toBe(true)
    return reasons.find(({ part }) => part === 'disk')
  }
  expect(await said(3)).toEqual({
    part: 'disk',
    ok: true,
    message: 'There are 3 GiB free for chats and outputs.',
  })
  expect(await said(1.9)).toMatchObject({
    ok: false,
    message: 'There are only 1.9 GiB free for chats and outputs.',
  })
  expect(await said(2.4)).toMatchObject({ ok: false })
  expect(await said(2.5)).toMatchObject({ ok: true })
  expect(await said(-1)).toBeUndefined()
})
