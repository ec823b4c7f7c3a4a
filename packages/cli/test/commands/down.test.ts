import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { down } from '../../src/commands/down.ts'
import { parseCliConfig } from '../../src/config.ts'
import { recordWriter } from '../../src/processes/pid-file.ts'
import { markOf } from '../../src/processes/process-mark.ts'
import { createSteps } from '../../src/steps.ts'

let folder: string
let said: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-down-'))
  said = ''
})
afterEach(() => rmSync(folder, { recursive: true }))

/** `down --end` with an engine whose certificates are missing. */
const end = (settings: Record<string, string> = {}, args = ['--end']): Promise<number> =>
  down({
    config: parseCliConfig(
      { DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: join(folder, 'missing'), ...settings },
      folder,
    ),
    args,
    steps: createSteps({ live: false, write: (text) => (said += text) }),
    print: (text) => (said += `${text}\n`),
  })

/** In the place of the agent, which has been started here before; `living`: on the database. */
function agent(program: string, living: readonly string[] = [], [sub, ext] = ['dist', 'js']): void {
  const admin = `process.stdout.write(${JSON.stringify(JSON.stringify(living))})`
  for (const [path, text] of [
    ['.sandlot/keys/deployment.json', '{"id":"d"}'],
    [`packages/ai-agent/${sub}/main.${ext}`, program],
    [`packages/ai-agent/${sub}/agent/sandboxes.${ext}`, admin],
  ] as const) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  mkdirSync(join(folder, 'packages/ai-agent/node_modules'), { recursive: true })
}

const NOT_ASKED = expect.stringMatching(/^! Couldn’t check the engine .*DOCKER_CERT_PATH: there is no folder/)

test('without the certificates of the engine it ends what it can, and reports what it could not check', async () => {
  expect(await end()).toBe(0)
  expect(said.split('\n')).toEqual([NOT_ASKED, 'Sandlot is not running.', ''])
})

test('an agent that cannot end its prompts is a failure, and sandboxes are looked for all the same', async () => {
  agent('console.error("broken"); process.exitCode = 3')
  await expect(end()).rejects.toThrow('failed (exit code 3)')
  expect(said.split('\n')).toEqual([
    '• Ending prompts that would resume at the next start',
    expect.stringMatching(/^✗ Ending prompts/),
    '    broken',
    expect.stringMatching(/failed \(exit code 3\)\. Its full output is in .*down\.log$/),
    '  → Its output is above.',
    NOT_ASKED,
    '',
  ])
})

test('without a build it runs the sources', async () => {
  agent('console.error("of the sources" satisfies string); process.exitCode = 3', [], ['src', 'ts'])
  await expect(end()).rejects.toThrow('failed (exit code 3)')
  expect(said).toContain('    of the sources\n')
})

test.each([[['--end']], [['--purge', '--yes']]])(
  'what is other agents’ on the same database, %s leaves alone, and says so',
  async (args) => {
    agent('console.error("ended"); process.exitCode = 3', ['here', 'there-2'])
    const ended = end(
      { DATABASE_URL: 'postgres://sandlot@db.example.org/sandlot', SANDLOT_REPLICA: 'here' },
      args,
    )
    if (args[0] === '--end') expect(await ended).toBe(0)
    else await expect(ended).rejects.toThrow('Other agents use the same database (there-2)')
    expect(said.split('\n')).toEqual(
      args[0] === '--end'
        ? [
            '! Other agents use the same database (there-2): their prompts continue, and all sandboxes keep running.',
            'Sandlot is not running.',
            '',
          ]
        : [''],
    )
  },
)

test('agents of the `up` that it ends are no others, also where they are still known as living', async () => {
  agent('', ['here-1', 'here-2'])
  const up = spawn(process.execPath, ['--eval', 'setInterval(() => {}, 1000)'])
  await once(up, 'spawn')
  const mark = markOf(up.pid ?? 0)
  if (mark === undefined) throw new Error('it has ended')
  mkdirSync(join(folder, '.sandlot/run'))
  recordWriter(join(folder, '.sandlot/run/up.json'), expect.fail).write({
    up: mark,
    url: 'http://127.0.0.1:8002',
    children: {},
    replicas: 2,
  })
  // `up` removes its own record.
  up.once('exit', () => rmSync(join(folder, '.sandlot/run/up.json')))
  const settings = { DATABASE_URL: 'postgres://sandlot@db.example.org/sandlot', SANDLOT_REPLICA: 'here' }
  expect(await end(settings)).toBe(0)
  expect(said).not.toContain('Other agents')
  expect(said).toContain('Couldn’t check the engine')
})
