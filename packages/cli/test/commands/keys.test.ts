import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deploymentKeys } from '@sandlot/shared/node/deployment-keys'
import { expect, test } from 'vitest'
import { keys, reportResult } from '../../src/commands/keys.ts'
import { people } from '../../src/commands/people.ts'
import { sandbox } from '../../src/commands/sandbox.ts'
import { parseCliConfig } from '../../src/config.ts'
import type { Command } from '../../src/context.ts'
import { run } from '../../src/programs/run.ts'
import { createSteps, failureLines, StepError } from '../../src/steps.ts'

/** Output of `./sandlot keys rotate`, and its exit code. */
function shown(answer: unknown): { lines: string[]; code: number } {
  const lines: string[] = []
  try {
    return { lines, code: reportResult(`${JSON.stringify(answer)}\n`, (line) => void lines.push(line)) }
  } catch (error) {
    if (!(error instanceof StepError)) throw error
    return { lines: failureLines(error), code: 1 }
  }
}

test('a new key is reported only where there is one', () => {
  expect(shown({ rotated: true, resealed: 1, lost: [] })).toEqual({
    lines: ['Rotated the key; 1 secret is sealed with the new one.'],
    code: 0,
  })
  expect(shown({ rotated: true, resealed: 0, lost: ['ada/TOKEN'] })).toEqual({
    lines: [
      'Rotated the key; 0 secrets are sealed with the new one.',
      'ada/TOKEN cannot be decrypted with any available key. Set it again.',
    ],
    code: 1,
  })
})

test('where nothing was changed, what to do is what helps against that', () => {
  const folder = '/srv/sandlot'
  expect(shown({ rotated: false, reason: 'no_deployment', folder })).toEqual({
    lines: [
      `  No Sandlot found in ${folder}; nothing was done.`,
      '  → Set SANDLOT_DATA to your data folder. The first ./sandlot up creates it.',
    ],
    code: 1,
  })
  expect(shown({ rotated: false, reason: 'running', folder })).toEqual({
    lines: [
      '  Sandlot is running; nothing was changed.',
      '  → Stop it with ./sandlot down, then run this again.',
    ],
    code: 1,
  })
})

test('of several agents those that run are named', () => {
  expect(
    shown({ rotated: false, reason: 'running', folder: '/srv/sandlot', agents: ['host-1', 'host-2'] }),
  ).toEqual({
    lines: [
      '  Sandlot is running (host-1, host-2); nothing was changed.',
      '  → Run ./sandlot down on each machine that has one of these agents, then run this again.',
    ],
    code: 1,
  })
})

test('new keys are those that agents and services read, and never replace others', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'sandlot-new-keys-'))
  const folder = join(parent, 'not yet', 'keys')
  const printed: string[] = []
  const make = (): ReturnType<Command> =>
    keys({
      config: parseCliConfig({}),
      args: ['new', folder],
      steps: createSteps({ write: () => undefined, live: false }),
      print: (line) => void printed.push(line),
    })
  try {
    expect(await make()).toBe(0)
    const files = () =>
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => join(parentPath, name))
        .toSorted()
    const texts = (): string[] => files().map((file) => readFileSync(file, 'utf8'))
    expect(files().map((file) => file.slice(folder.length + 1))).toEqual([
      'agent/agent-token',
      'agent/deployment.json',
      'service/agent-token',
      'service/alerts',
      'service/previews',
      'service/push',
      'service/service-cookies',
    ])
    expect(files().map((file) => statSync(file).mode & 0o777)).toEqual(files().map(() => 0o600))
    expect(new Set(texts()).size).toBe(6)
    const before = texts()
    expect(readFileSync(join(folder, 'agent', 'agent-token'), 'utf8')).toBe(
      readFileSync(join(folder, 'service', 'agent-token'), 'utf8'),
    )
    expect(deploymentKeys(join(folder, 'agent')).key).toHaveLength(32)
    expect(printed).toEqual([
      `kubectl --namespace sandlot create secret generic sandlot-agent-keys --from-file='${folder}/agent'`,
      `kubectl --namespace sandlot create secret generic sandlot-service-keys --from-file='${folder}/service'`,
    ])

    await expect(make()).rejects.toThrow(`${folder} is not empty; nothing was changed.`)
    expect(texts()).toEqual(before)
    expect(readdirSync(join(parent, 'not yet'))).toEqual(['keys'])
  } finally {
    rmSync(parent, { recursive: true })
  }
})

test.each<[string, Command, string[]]>([
  ['keys rotate', keys, ['rotate']],
  ['people list', people, ['list']],
  ['people password', people, ['password', 'ada@example.org']],
  ['people remove', people, ['remove', 'ada@example.org', '--purge', '--yes']],
  ['sandbox list', sandbox, ['list']],
  ['sandbox prune', sandbox, ['prune', '--yes']],
])('%s in a folder that is no Sandlot’s says so, and makes nothing there', async (_name, command, args) => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-nobodys-'))
  try {
    const config = parseCliConfig({ SANDLOT_DATA: folder })
    const steps = createSteps({ write: () => undefined, live: false })
    const ran = command({ config, args, steps, print: () => undefined })
    await expect(ran).rejects.toThrow(`No Sandlot found in ${folder}`)
    expect(readdirSync(folder)).toEqual([])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('an exit code that is an answer is no failure, any other is one', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-run-'))
  const options = { cwd: folder, environment: {}, log: join(folder, 'run.log'), fix: 'nothing' }
  const ends = (code: number, alsoGood?: number[]): Promise<string> =>
    run(process.execPath, ['-e', `process.stdout.write('said'); process.exitCode = ${code}`], {
      ...options,
      alsoGood,
    })
  try {
    await expect(ends(3, [3])).resolves.toBe('said')
    await expect(ends(0, [3])).resolves.toBe('said')
    await expect(ends(1, [3])).rejects.toThrow('failed (exit code 1)')
    await expect(ends(3)).rejects.toThrow('failed (exit code 3)')
  } finally {
    rmSync(folder, { recursive: true })
  }
})
