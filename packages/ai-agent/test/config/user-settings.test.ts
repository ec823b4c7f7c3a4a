/** The subjects of administrators' settings, and the one of several that counts. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '@sandlot/shared/config'
import { openSessionStore } from '@sandlot/storage/store/open'
import { describe, expect, test } from 'vitest'
import { readAgentConfig } from '../../src/config/config.ts'
import { People } from '../../src/people/people.ts'
import { RuleRegistry } from '../../src/approval/rule-registry.ts'
import { ruleSettings } from '../../src/approval/config.ts'
import { limitsFor, log, personalSettings, setFor } from '../support/personal-settings.ts'
import { allowHost } from '../../src/tools/allow-host.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { createRegistry } from '../../src/tools/registry.ts'
import { offeredToolsOf } from '../../src/config/tool-offer.ts'
import { userNetwork } from '../../src/config/network.ts'
import { fileFolder } from '../../../../test/folders.ts'

const folder = fileFolder('people')

function read(file: unknown, env: Record<string, string> = {}) {
  const path = join(folder, 'sandlot.json')
  writeFileSync(path, JSON.stringify(file))
  const names = builtinTools().map(({ name }) => name)
  return readAgentConfig(names, { SANDLOT_DATA: folder, SANDLOT_CONFIG: path, ...env })
}
function problems(file: unknown, env: Record<string, string> = {}): string {
  try {
    read(file, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.join('\n')
    throw error
  }
  return ''
}
const emails: Record<string, string> = { id1: 'ada@example.org', id2: 'bob@example.org' }
const emailOf = (userId: string): string | undefined => emails[userId]

describe('who is meant', () => {
  test('an id or an e-mail address, in any case; a team in which they are; the person wins over the team, the id over the address', () => {
    const { file } = read({
      teams: {
        design: { members: ['ADA@example.org', 'id2'], modeCeiling: 'manual', network: { mode: 'none' } },
      },
      users: {
        'Ada@Example.org': { modeCeiling: 'auto-edit', network: { mode: 'egress', hosts: ['pypi.org'] } },
        id1: { network: { hosts: ['git-hosts'] } },
      },
    })
    const { of } = setFor(file, emailOf)
    expect(of('id1')).toEqual({
      modeCeiling: 'auto-edit',
      network: { mode: 'egress', hosts: ['git-hosts'] },
    })
    expect(of('id2')).toEqual({ modeCeiling: 'manual', network: { mode: 'none' } })
    expect(of('id3')).toEqual({})
    expect(of('constructor')).toEqual({})
    expect(of('__proto__')).toEqual({})
  })

  describe('somebody who is in one team by id and in another by address', () => {
    const teams = {
      byAddress: { members: ['ada@example.org'], modeCeiling: 'manual', network: { ask: false } },
      byId: { members: ['id1', 'bob@example.org'], network: { mode: 'none' } },
    }

    test.each([teams, Object.fromEntries(Object.entries(teams).toReversed())])(
      'has what both say, in whatever order they stand',
      (both) => {
        const { of } = setFor(read({ teams: both }).file, emailOf)
        expect(of('id1')).toEqual({ modeCeiling: 'manual', network: { mode: 'none', ask: false } })
        expect(of('id2')).toEqual({ network: { mode: 'none' } })
      },
    )
  })

  test('limits too', () => {
    const { limits } = read({ limits: { users: { 'ADA@example.org': { calls: 7 }, id2: { calls: 8 } } } })
    const callsOf = (userId: string) => limitsFor(limits, userId, emailOf(userId)).budgets.calls
    expect([callsOf('id1'), callsOf('id2'), callsOf('id3')]).toEqual([7, 8, undefined])
  })

  test('an address that was said once is known after a restart, and may change', async () => {
    const path = join(folder, 'people.db')
    const store = await openSessionStore(path)
    const people = await People.open(store.people.known, log)
    people.record({ id: 'id1', email: 'old@example.org' })
    people.record({ id: 'id1', email: 'Ada@Example.org' })
    people.record({ id: 'id1' })
    expect(people.emailOf('id1')).toBe('ada@example.org')
    await people.settled()
    await store.close()
    const again = await openSessionStore(path)
    const known = await People.open(again.people.known, log)
    expect([known.emailOf('id1'), known.emailOf('id2')]).toEqual(['ada@example.org', undefined])
    await again.close()
  })

  test.each<[string, unknown, string]>([
    [
      'a name',
      { users: { 'Ada Lovelace': {} } },
      'users.Ada Lovelace: "Ada Lovelace" is no user id, and names are not unique',
    ],
    ['half an address', { users: { 'ada@': {} } }, '"ada@" is no e-mail address'],
    ['twice', { users: { 'a@example.org': {}, 'A@example.org': {} } }, 'A@example.org is there twice'],
    ['in a limit', { limits: { users: { 'a b': {} } } }, 'limits.users.a b: "a b" is no user id'],
    ['nobody', { teams: { x: { members: [] } } }, 'teams.x.members'],
    [
      'a host',
      { users: { a: { network: { hosts: ['10.0.0.1'] } } } },
      'users.a.network.hosts.0: "10.0.0.1" cannot be allowed',
    ],
    [
      'hosts of none',
      { users: { a: { network: { mode: 'none', hosts: [] } } } },
      'users.a.network: hosts and ask say nothing',
    ],
    [
      'a setting',
      { teams: { x: { members: ['a'], netwrok: {} } } },
      'teams.x.netwrok is not a setting of Sandlot',
    ],
    [
      'a tool',
      { teams: { x: { members: ['a'], tools: { glop: true } } } },
      'teams.x.tools: there is no tool glop',
    ],
  ])('%s is refused, with what to write', (_, file, words) => {
    expect(problems(file)).toContain(words)
  })
})

describe('the network of one person', () => {
  const EGRESS = { SANDLOT_SANDBOX_NETWORK: 'egress', SANDLOT_EGRESS_ALLOW: 'pypi.org' }

  async function networkOf(file: unknown, env: Record<string, string>) {
    const config = read(file, env)
    const store = await openSessionStore(join(folder, 'rules.db'))
    const rules = new RuleRegistry(store.people.rules, ruleSettings(config.file.rules), Date.now)
    const asks = config.file.rules?.hosts === 'ask'
    const personal = personalSettings(config.file, emailOf)
    return { network: userNetwork(config.sandbox.network, asks, personal, rules), rules, store, personal }
  }

  test('an administrator’s word wins over everybody’s setting, in both directions', async () => {
    const closed = await networkOf({ users: { 'ada@example.org': { network: { mode: 'none' } } } }, EGRESS)
    expect(['id1', 'id2'].map((id) => closed.network.options.isOpenTo?.(id))).toEqual([false, true])
    await closed.store.close()
    const file = {
      users: { 'ada@example.org': { network: { mode: 'egress', hosts: ['crates.io'], ask: true } } },
    }
    const opened = await networkOf(file, {})
    expect(['id1', 'id2'].map((id) => opened.network.options.isOpenTo?.(id))).toEqual([true, false])
    expect(opened.network.options.allowFor?.('id1')).toEqual(['crates.io'])
    expect(opened.network.options.allowFor?.('id2')).toBeUndefined()
    await opened.store.close()
  })

  test('what commands reach is read from it as it is now: no network, no host, a host by a rule', async () => {
    const file = {
      rules: { hosts: 'ask' },
      users: {
        'ada@example.org': { network: { mode: 'none' } },
        'bob@example.org': { network: { hosts: [] } },
      },
    }
    const { network, rules, store } = await networkOf(file, EGRESS)
    const reaches = async () =>
      await Promise.all(['id1', 'id2', 'id3'].map(async (id) => network.reachesAny(id, await rules.of(id))))
    expect(await reaches()).toEqual([false, false, true])
    for (const id of ['id1', 'id2'])
      await rules.add(id, { effect: 'allow', match: { host: 'api.example.org' } })
    expect(await reaches()).toEqual([false, true, true])
    await store.close()
  })

  test('asking for hosts is for those who may: the tool, and what rules open', async () => {
    const file = {
      rules: { hosts: 'ask', allow: [{ host: 'api.example.org' }] },
      users: { 'bob@example.org': { network: { ask: false } } },
    }
    const { network, rules, store, personal } = await networkOf(file, EGRESS)
    const at = { host: 'api.example.org', port: 443 }
    const ruling = async (userId: string) => (await network.options.rulesOf?.(userId))?.(at)
    expect(await ruling('id1')).toEqual({ decision: 'allow', ruleId: 'deployment:allow:1' })
    expect(await ruling('id2')).toBeUndefined()
    const all = createRegistry()
    all.register(
      ...builtinTools(),
      allowHost(rules, (userId) => network.mayAsk(userId)),
    )
    const toolsOf = offeredToolsOf(async () => all, { toolsEnabled: true, personal })
    const { signal } = new AbortController()
    expect((await toolsOf('id1', signal)).has('allow_host')).toBe(true)
    const without = await toolsOf('id2', signal)
    expect(without.has('allow_host')).toBe(false)
    expect(without.listTools()).toHaveLength(builtinTools().length)
    expect(await toolsOf('id2', signal)).toBe(without)
    await store.close()
  })
})
