import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { down } from '../../src/commands/down.ts'
import { parseCliConfig } from '../../src/config.ts'
import { createSteps } from '../../src/steps.ts'

let folder: string
let said: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-down-'))
  said = ''
})
afterEach(() => rmSync(folder, { recursive: true }))

/** `down --end` with an engine whose certificates are missing. */
const end = (): Promise<number> =>
  down({
    config: parseCliConfig({ DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: join(folder, 'missing') }, folder),
    args: ['--end'],
    steps: createSteps({ live: false, write: (text) => (said += text) }),
    print: (text) => (said += `${text}\n`),
  })

/** In the place of the agent, which has been started here before. */
function agent(program: string): void {
  for (const [path, text] of [
    ['.sandlot/keys/deployment.json', '{}'],
    ['packages/ai-agent/dist/main.js', program],
  ] as const) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}

const NOT_ASKED = expect.stringMatching(
  /^! The engine cannot be asked .*DOCKER_CERT_PATH: there is no folder/,
)

test('without the certificates of the engine it ends what it can, and reports what it could not check', async () => {
  expect(await end()).toBe(0)
  expect(said.split('\n')).toEqual([NOT_ASKED, 'Sandlot is not running.', ''])
})

test('an agent that cannot end its prompts is a failure, and sandboxes are looked for all the same', async () => {
  agent('console.error("broken"); process.exitCode = 3')
  await expect(end()).rejects.toThrow('ended with 3')
  expect(said.split('\n')).toEqual([
    '• Ending the prompts that wait for the next start',
    expect.stringMatching(/^✗ Ending the prompts/),
    '    broken',
    expect.stringMatching(/ended with 3\. All of its output is in .*down\.log$/),
    '  → What it said is above.',
    NOT_ASKED,
    '',
  ])
})
