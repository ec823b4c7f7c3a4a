import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { down } from '../src/commands/down.ts'
import { parseCliConfig } from '../src/config.ts'
import { createSteps } from '../src/steps.ts'

test('without the certificates of the engine it ends what it can, and says what it could not look at', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-down-'))
  let said = ''
  const code = await down({
    config: parseCliConfig({ DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: join(folder, 'missing') }, folder),
    args: ['--end'],
    steps: createSteps({ live: false, write: (text) => (said += text) }),
    print: (text) => (said += `${text}\n`),
  })
  rmSync(folder, { recursive: true })
  expect(code).toBe(0)
  expect(said.split('\n')).toEqual([
    expect.stringMatching(/^! The engine cannot be asked .*DOCKER_CERT_PATH: there is no folder/),
    'Sandlot is not running.',
    '',
  ])
})
