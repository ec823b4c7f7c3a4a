import { REMOVAL_HELP } from '@sandlot/shared/api'
import { expect, test } from 'vitest'
import { people, told } from '../src/commands/people.ts'
import { parseCliConfig } from '../src/config.ts'
import { createSteps, StepError } from '../src/steps.ts'

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

test('what was done is said in words; a password once', () => {
  expect(
    told(JSON.stringify({ did: 'list', users: [ADA], removed: [BOB, { ...BOB, data: 'keep', done: true }] })),
  ).toEqual([
    'u1  ada@example.org  Ada  (administrator)',
    'u2  bob@example.org  Bob  (removed, files and chats are being deleted)',
    'u2  bob@example.org  Bob  (removed, files and chats kept)',
  ])
  const kept = { ...BOB, data: 'keep' }
  const stuck = { ...kept, problem: 'Their sandbox could not be removed: no engine' }
  expect(told(JSON.stringify({ did: 'list', users: [], removed: [kept, stuck] }))).toEqual([
    'u2  bob@example.org  Bob  (removed, under way)',
    'u2  bob@example.org  Bob  (removed, under way; see below)',
    '',
    'Bob is not removed whole yet: Their sandbox could not be removed: no engine',
    REMOVAL_HELP,
  ])
  expect(told(JSON.stringify({ did: 'password', person: ADA, password: 'p4ss' })).join(' ')).toContain(
    'is: p4ss ',
  )
  expect(told(JSON.stringify({ did: 'remove', removal: BOB })).at(-1)).toBe(
    'The rest (what runs, the sandbox, files and chats) ends when Sandlot starts next.',
  )
  // Nothing is left that could end.
  expect(told(JSON.stringify({ did: 'remove', removal: { ...kept, done: true } })).at(-1)).toBe(
    'They were removed before. Their files and chats are kept.',
  )
})

test.each([
  ['no_deployment', 'There is no Sandlot in x'],
  ['running', 'Sandlot is running'],
  ['no_such_person', 'Nobody has the address or the id x'],
  ['refused', 'x'],
  ['other_version', 'x'],
])('where nothing was done (%s) it says why', (reason, words) => {
  const nothing = (): string[] => told(JSON.stringify({ did: 'nothing', reason, message: 'x' }))
  expect(nothing).toThrow(StepError)
  expect(nothing).toThrow(words)
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
