/** The doctor’s question for ownerless volumes, asked of the real admin program over folders instead of an engine. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Finding } from '@sandlot/shared/base/finding'
import { beforeEach, expect, test } from 'vitest'
import { LOCAL_PROCESS, nodeEnvironment } from '../../../../test/config.ts'
import { deploymentKeys } from '@sandlot/shared/node/deployment-keys'
import { parseCliConfig } from '../../src/config.ts'
import { sandboxes } from '../../src/checks/sandbox-checks.ts'
import { testFolder } from '../../../../test/folders.ts'

const PROGRAM = join(import.meta.dirname, '../../../ai-agent/src/agent/sandboxes.ts')

let root: string
beforeEach(() => {
  root = testFolder('doctor')
  // A checkout needs a build, a test does not: what stands where the build would runs the sources.
  build(`
    import { spawnSync } from 'node:child_process'
    const args = ['--conditions=sandlot-source', ${JSON.stringify(PROGRAM)}, ...process.argv.slice(2)]
    process.exitCode = spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1`)
})

function build(text: string): void {
  const folder = join(root, 'packages', 'ai-agent', 'dist')
  mkdirSync(join(folder, 'agent'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'agent', 'sandboxes.js'), text)
}

async function found(): Promise<Finding | undefined> {
  const config = parseCliConfig({ ...nodeEnvironment(), ...LOCAL_PROCESS }, root)
  return (await sandboxes(config)).find(({ id }) => id === 'ownerless-volumes')
}

test('there are none before the first start, and nothing is made by asking', async () => {
  build('process.exitCode = 1')
  expect(await found()).toMatchObject({ group: 'warn', state: 'ok' })
})

test('a volume without a known owner is named, with the command that removes it', async () => {
  deploymentKeys(join(root, '.sandlot', 'keys'))
  expect(await found()).toMatchObject({ state: 'ok', message: 'none' })
  for (const name of ['stray', 'astray'])
    mkdirSync(join(root, '.sandlot', 'workspaces', name), { recursive: true })
  expect(await found()).toMatchObject({
    group: 'warn',
    state: 'failed',
    message: 'neither the ledger nor the engine has an owner of astray, stray',
    fix: expect.stringContaining('./sandlot sandbox prune') as string,
  })
}, 60_000)

test('where the engine cannot be asked, nothing passes', async () => {
  deploymentKeys(join(root, '.sandlot', 'keys'))
  build('process.exitCode = 1')
  expect(await found()).toMatchObject({ group: 'warn', state: 'unknown' })
})
