import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { REMOVAL_HELP } from '@sandlot/shared/account/api'
import {
  LIMIT_NAMES,
  agentLimits,
  effectiveSettings,
  isEditableLimit,
} from '@sandlot/shared/account/agent-settings'
import { expect, test } from 'vitest'
import { people, resultLines } from '../../src/commands/people.ts'
import { parseCliConfig } from '../../src/config.ts'
import { createSteps, StepError } from '../../src/steps.ts'

const ADA = { id: 'u1', name: 'Ada', email: 'ada@example.org', role: 'admin' }
const BOB = {
  id: 'u2',
  name: 'Bob',
  email: 'bob@example.org',
  data: 'purge',
  removedAt: 1,
  done: false,
  problem: null,
}

test('results are printed as sentences; a password once', () => {
  expect(
    resultLines(
      JSON.stringify({ did: 'list', users: [ADA], removed: [BOB, { ...BOB, data: 'keep', done: true }] }),
    ),
  ).toEqual([
    'u1  ada@example.org  Ada  (administrator)',
    'u2  bob@example.org  Bob  (removed, deleting files and chats)',
    'u2  bob@example.org  Bob  (removed, files and chats kept)',
  ])
  const kept = { ...BOB, data: 'keep' }
  const stuck = { ...kept, problem: 'Their sandbox could not be removed: no engine' }
  expect(resultLines(JSON.stringify({ did: 'list', users: [], removed: [kept, stuck] }))).toEqual([
    'u2  bob@example.org  Bob  (removed, in progress)',
    'u2  bob@example.org  Bob  (removed, in progress; see below)',
    '',
    'Bob is not completely removed yet: Their sandbox could not be removed: no engine',
    REMOVAL_HELP,
  ])
  expect(resultLines(JSON.stringify({ did: 'password', person: ADA, password: 'p4ss' })).join(' ')).toContain(
    'is: p4ss ',
  )
  expect(resultLines(JSON.stringify({ did: 'remove', removal: BOB })).at(-1)).toBe(
    'At the next start of Sandlot their prompts end, and their sandbox, files and chats are removed.',
  )
  // Nothing is left that could end.
  expect(resultLines(JSON.stringify({ did: 'remove', removal: { ...kept, done: true } })).at(-1)).toBe(
    'They were already removed. Their files and chats are kept.',
  )
})

test('what holds for a person is a table, each with where it comes from', () => {
  const limits = Object.fromEntries(LIMIT_NAMES.map((name) => [name, name === 'turns' ? 100 : 0]))
  const deployment = {
    tools: true,
    mcpServers: ['search'],
    models: ['main', 'small'],
    network: { mode: 'none' as const, hosts: [], ask: false },
    limits: agentLimits.required().parse(limits),
  }
  const data = {
    id: 't',
    name: 'Data',
    settings: { modeCeiling: 'manual' as const, instructions: 'Be brief.' },
  }
  const effective = effectiveSettings(deployment, [data], { tools: { glob: false }, limits: { calls: 7 } })
  const person = { ...ADA, role: 'guest', teams: ['t'] }
  expect(resultLines(JSON.stringify({ did: 'show', person, teams: ['Data'], effective }))).toEqual([
    'Ada (ada@example.org), a guest, in Data',
    '',
    'SETTING               VALUE         FROM',
    'highest mode          manual        team Data',
    'tools                 all           the deployment',
    '  glob                no            the person',
    'MCP servers           search        the deployment',
    '  of their own        public        the deployment',
    'models                main, small   the deployment',
    'network               none          the deployment',
    '  hosts               none          the deployment',
    '  may ask for hosts   no            the deployment',
    'limit turns           100           the deployment',
    'limit calls           7             the person',
    ...LIMIT_NAMES.slice(2)
      .filter(isEditableLimit)
      .map((name) => `${`limit ${name}`.padEnd(20)}  none          the deployment`),
    'instructions          9 characters  team Data',
  ])
  expect(resultLines(JSON.stringify({ did: 'role', person }))).toEqual([
    'Ada (ada@example.org) is now a guest.',
  ])
})

test.each([
  ['no_deployment', 'No Sandlot found in x'],
  ['running', 'Sandlot is running'],
  ['not_running', 'Sandlot is not running'],
  ['no_such_person', 'No user has the address or ID x'],
  ['refused', 'x'],
  ['other_version', 'x'],
])('where nothing was done (%s) it says why', (reason, words) => {
  const nothing = (): string[] => resultLines(JSON.stringify({ did: 'nothing', reason, message: 'x' }))
  expect(nothing).toThrow(StepError)
  expect(nothing).toThrow(words)
})

test('as JSON a list is what was printed, and where there is none the command fails as without', async () => {
  const root = await mkdtemp(join(tmpdir(), 'sandlot-people-'))
  const lines: string[] = []
  const steps = createSteps({ write: () => undefined, live: false })
  const config = { ...parseCliConfig({ SANDLOT_DATA: join(root, 'data') }), root }
  const list = () =>
    people({ config, args: ['list', '--json'], steps, print: (line) => void lines.push(line) })
  // The program beside it, as far as it is a process that prints one line.
  const prints = async (answer: object, exitCode: number) =>
    writeFile(
      join(root, 'packages', 'service', 'dist', 'people', 'people-admin.js'),
      `console.log(${JSON.stringify(JSON.stringify(answer))}); process.exitCode = ${exitCode}`,
    )
  try {
    for (const folder of [join('data', 'keys'), join('packages', 'service', 'dist', 'people')])
      await mkdir(join(root, folder), { recursive: true })
    await writeFile(join(root, 'data', 'keys', 'deployment.json'), '{}')
    const known = { did: 'list', users: [ADA], removed: [BOB] }
    await prints(known, 0)
    expect(await list()).toBe(0)
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([known])
    await prints({ did: 'nothing', reason: 'other_version', message: 'Start it once.' }, 3)
    await expect(list()).rejects.toThrow('Start it once.')
    expect(lines).toHaveLength(1)
  } finally {
    await rm(root, { recursive: true })
  }
})

test.each([
  [[]],
  [['password']],
  [['remove', 'ada@example.org']],
  [['remove', '--purge', '--yes']],
  [['remove', 'ada@example.org', '--keep', '--purge']],
])('%j says how it is used, and does nothing', async (args) => {
  const lines: string[] = []
  const steps = createSteps({ write: () => undefined, live: false })
  const config = parseCliConfig({ SANDLOT_DATA: '/nowhere' })
  expect(await people({ config, args, steps, print: (line) => void lines.push(line) })).toBe(2)
  expect(lines[0]).toContain('Usage: ./sandlot people')
})
