/** Rules are read once until something changes, and a change counts for whoever asks after it. */
import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import type { RuleStore } from '@sandlot/storage/sessions/rules'
import type { SessionStore } from '@sandlot/storage/sessions/store'
import { openSessionStore } from '@sandlot/storage/store/open'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { withCachedRules, RuleRegistry } from '../../src/approval/rule-registry.ts'
import { ruleSettings } from '../../src/approval/config.ts'

let folder: string
let real: SessionStore
let store: SessionStore
/** Users whose rules were read from the database. */
let reads: string[]
let now = 1_000

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-rules-'))
  real = await openSessionStore(join(folder, 'sessions.db'))
  reads = []
  now = 1_000
  const list = (userId: string) => {
    reads.push(userId)
    return real.people.rules.list(userId)
  }
  store = withCachedRules({ ...real, people: { ...real.people, rules: { ...real.people.rules, list } } })
})
afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

const book = (): RuleRegistry => new RuleRegistry(store.people.rules, ruleSettings(undefined), () => now)
const rule = (id: string, more: object = {}) => ({
  id,
  effect: 'allow' as const,
  match: { host: `${id}.example.org` },
  createdAt: 1,
  ...more,
})

test('many questions are one read of the database, also at once, of each person and of everybody', async () => {
  const rules = book()
  await Promise.all([rules.of('ada'), rules.of('ada'), rules.of('bob')])
  for (let n = 0; n < 5; n++) await rules.of('ada')
  expect(reads.toSorted()).toEqual(['ada', 'bob', 'deployment:rules'])
})

test('a revoke counts for the next question, also for one whose read began before it', async () => {
  const rules = book()
  const { id } = await rules.add('ada', { effect: 'allow', match: { host: 'a.example.org' } })
  expect(await rules.of('ada')).toHaveLength(1)
  const revoked = rules.revoke('ada', id)
  // Read by somebody else before the revoke has resolved.
  void rules.of('ada')
  await revoked
  expect(await rules.of('ada')).toEqual([])
})

test('what is over by the clock is over, without a read', async () => {
  const rules = book()
  await rules.add('ada', { effect: 'deny', match: { host: 'a.example.org' }, expiresAt: 2_000 })
  expect(await rules.of('ada')).toHaveLength(1)
  now = 2_000
  expect(await rules.of('ada')).toEqual([])
  expect(reads).toEqual(['ada', 'deployment:rules'])
})

test.each<[string, () => Promise<unknown>, string[]]>([
  ['an added rule', () => store.people.rules.add('ada', rule('new')), ['new', 'once', 'session']],
  [
    'one that is refused',
    () => store.people.rules.add('ada', rule('once')).catch(() => 0),
    ['once', 'session'],
  ],
  [
    'a stored answer',
    () => store.log.append('s', [], { rules: [rule('answered')] }),
    ['answered', 'once', 'session'],
  ],
  ['the end of the prompt', () => store.log.append('s', [], { runningPromptId: null }), ['session']],
  ['the end of the session', () => store.sessions.remove('s'), []],
])('%s changes what holds, at once', async (_, change, left) => {
  await store.sessions.create({ id: 's', userId: 'ada', cwd: '/', mode: 'manual', at: 1 })
  const started = makeSandlotEvent({ type: 'prompt_started' }, { promptId: 'p' }, 1)
  await store.log.append('s', [started], { runningPromptId: 'p' })
  await store.people.rules.add('ada', rule('once', { endsWith: { sessionId: 's', promptId: 'p' } }))
  await store.people.rules.add('ada', rule('session', { endsWith: { sessionId: 's' } }))
  const ids = async (rules: RuleStore) => (await rules.list('ada')).map(({ id }) => id)
  expect(await ids(store.people.rules)).toEqual(['once', 'session'])
  await change()
  expect(await ids(store.people.rules)).toEqual(left)
  expect(await ids(real.people.rules)).toEqual(left)
})

test('a read that fails is not kept', async () => {
  let list: RuleStore['list'] = () => Promise.reject(new Error('no disk'))
  const rules = { ...real.people.rules, list: (userId: string) => list(userId) }
  const cached = withCachedRules({ ...real, people: { ...real.people, rules } })
  await expect(cached.people.rules.list('ada')).rejects.toThrow('no disk')
  list = real.people.rules.list
  expect(await cached.people.rules.list('ada')).toEqual([])
})
