/** The doctor’s sandbox is the one that is configured, on the engine that is configured: here behind TLS. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Finding } from '@sandlot/shared/base/finding'
import type { Environment } from '@sandlot/shared/config'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodeEnvironment } from '../../../../test/config.ts'
import { testConfig } from '../../../sandbox/test/support/config.ts'
import {
  engineBehindTls,
  makeCertificates,
  type TlsEngine,
} from '../../../sandbox/test/support/tls-engine.ts'
import { parseCliConfig } from '../../src/config.ts'
import { askEngine } from '../../src/setup/engine.ts'
import { sandboxes } from '../../src/checks/sandbox-checks.ts'

let folder: string
let engine: TlsEngine
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-doctor-'))
  for (const name of ['ours', 'strangers']) makeCertificates(join(folder, name))
  engine = await engineBehindTls(join(folder, 'ours'))
})
afterAll(() => {
  engine.close()
  rmSync(folder, { recursive: true })
})

const configured = (certificates: string, settings: Environment = {}) =>
  parseCliConfig(
    {
      ...nodeEnvironment(),
      SANDLOT_DATA: join(folder, 'data'),
      SANDLOT_SANDBOX_IMAGE: testConfig.image,
      DOCKER_HOST: engine.address,
      DOCKER_TLS_VERIFY: '1',
      DOCKER_CERT_PATH: join(folder, certificates),
      ...settings,
    },
    folder,
  )

async function found(id: string, ...given: Parameters<typeof configured>): Promise<Finding | undefined> {
  return (await sandboxes(configured(...given))).find((finding) => finding.id === id)
}

test('with its certificates it is asked and makes a sandbox', async () => {
  expect(await askEngine(configured('ours'))).not.toBeInstanceOf(Error)
  const findings = await sandboxes(configured('ours'))
  expect(findings.filter(({ group, state }) => group === 'must' && state === 'failed')).toEqual([])
  expect(findings.map(({ id }) => id)).toContain('seccomp-profile')
})

test('with foreign certificates nothing is reached', async () => {
  expect(await askEngine(configured('strangers'))).toBeInstanceOf(Error)
  expect(await found('engine', 'strangers')).toMatchObject({ group: 'must', state: 'failed' })
})

test('the sandbox has the limits, the runtime and the profile that are set', async () => {
  // More processors than there are: an engine refuses to make this one, and makes one of the defaults.
  expect(await found('sandbox', 'ours', { SANDLOT_SANDBOX_CPUS: '1024' })).toMatchObject({ state: 'failed' })
  expect(await found('runtime', 'ours', { SANDLOT_SANDBOX_RUNTIME: 'no-such' })).toMatchObject({
    state: 'failed',
  })
  // The ordinary filter lets nobody trace; this is judged by the other one’s rule.
  const debug = await sandboxes(configured('ours', { SANDLOT_SANDBOX_DEBUG_USERS: '*' }))
  expect(debug.find(({ id }) => id === 'seccomp-profile')).toMatchObject({ state: 'ok' })
})

test('settings that do not go together are named, and nothing is made', async () => {
  const settings = { SANDLOT_SANDBOX_MEMORY_MB: '64', SANDLOT_SANDBOX_TMP_MB: '1024' }
  expect(await found('settings', 'ours', settings)).toMatchObject({
    group: 'must',
    state: 'failed',
    message: expect.stringContaining('SANDLOT_SANDBOX_TMP_MB') as string,
  })
  expect(await found('sandbox', 'ours', settings)).toBeUndefined()
})
