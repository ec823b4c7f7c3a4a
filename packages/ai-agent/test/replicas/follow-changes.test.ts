/** Two agents on one PostgreSQL: what one changes for all, the other one goes by. */
import type { AddedServer } from '@sandlot/shared/admin/mcp-servers'
import { printOf } from '@sandlot/shared/node/secret-file'
import { openSessionStore } from '@sandlot/storage/store/open'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { describeOnPostgres } from '../../../storage/test/support/on-postgres.ts'
import { ruleSettings } from '../../src/approval/config.ts'
import { RuleRegistry, withCachedRules } from '../../src/approval/rule-registry.ts'
import { ServerRegistry } from '../../src/mcp/server-registry.ts'
import { ModelRegistry } from '../../src/model/model-registry.ts'
import { People } from '../../src/people/people.ts'
import { Removals } from '../../src/people/removal.ts'
import { SettingsRegistry } from '../../src/people/settings-registry.ts'
import { followChanges } from '../../src/replicas/follow-changes.ts'
import { openReplica } from '../../src/replicas/open-replica.ts'
import { UserSecrets } from '../../src/people/user-secrets.ts'
import { createVault } from '../../src/people/vault.ts'

/** A change is read at the next look, if its notification is lost. */
const eventually = <T>(of: () => T) => expect.poll(of, { timeout: 20_000 })

const KEY = new Uint8Array(32).fill(7)
const OF_PROMPT = { turns: 100, calls: 100, tokens: 1_000, cost: 1, promptSeconds: 100 }
const OF_DAY = { turnsPerDay: 100, callsPerDay: 100, tokensPerDay: 1_000, costPerDay: 1, secondsPerDay: 100 }
const OF_MONTH = {
  turnsPerMonth: 100,
  callsPerMonth: 100,
  tokensPerMonth: 1_000,
  costPerMonth: 1,
  secondsPerMonth: 100,
}
const ROOT = { who: { id: 'root', name: 'Root' } }
const SERVER: AddedServer = {
  name: 'notes',
  enabled: true,
  connection: {
    kind: 'http',
    url: 'https://notes.example/mcp',
    headers: [],
    auth: { type: 'client-credentials', issuer: 'https://notes.example', clientId: 'sandlot' },
  },
  off: [],
  readOnly: [],
}

describeOnPostgres('two agents on PostgreSQL', (postgres) => {
  let url: string
  const closing: (() => Promise<unknown>)[] = []
  beforeAll(async () => {
    url = await postgres.database('books')
  }, 60_000)
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close()
  })

  async function agent(key = KEY, sealing: readonly Uint8Array[] = [KEY]) {
    const warned: string[] = []
    const log = { info: () => undefined, warn: (_: unknown, line: string) => void warned.push(line) }
    const database = await openSessionStore(url)
    const store = withCachedRules(database)
    const address = { url: 'ws+unix:///nowhere' }
    closing.push(() => store.close())
    const replica = await openReplica({
      database: url,
      id: undefined,
      address,
      version: '1',
      keys: { id: 'books', key, sealing, folder: '/keys' },
      engine: () => Promise.resolve(undefined),
      rows: store.replicas,
      log,
    })
    if (replica === undefined) throw new Error('this is not PostgreSQL')
    closing.push(() => replica.close())
    const people = await People.open(store.people.known, log)
    const removals = new Removals(await store.people.known.removed())
    const rules = new RuleRegistry(store.people.rules, ruleSettings(undefined), Date.now)
    const vault = createVault([KEY])
    const secrets = new UserSecrets({
      rows: store.people.secrets,
      vault,
      redact: () => undefined,
      now: Date.now,
    })
    const models = await ModelRegistry.open({
      rows: store.people.modelEndpoints,
      secrets,
      configured: undefined,
      silence: { idleMs: 1_000, progressMs: 1_000 },
      originKey: new Uint8Array(32),
      prices: {},
      limitsCost: () => false,
      now: Date.now,
      log,
    })
    const servers = await ServerRegistry.open({
      rows: store.people.mcpServers,
      secrets,
      configured: [],
      may: () => 'public',
      changed: () => settings.renew(),
      now: Date.now,
      log,
    })
    const deployment = {
      tools: true,
      mcpServers: [],
      models: [],
      network: { mode: 'none', hosts: [], ask: false },
      limits: { ...OF_PROMPT, ...OF_DAY, ...OF_MONTH },
    } as const
    const parts = { rows: store.people.settings, people, deployment, tools: [], now: Date.now, log }
    const settings = new SettingsRegistry(
      { ...parts, problem: () => undefined },
      await store.people.settings.all(),
    )
    const rechecked: string[] = []
    followChanges(replica, {
      people,
      settings,
      models,
      servers,
      removals,
      forgetRules: () => store.forgetRules(),
      removedPeople: () => store.people.known.removed(),
      recheck: (userId) => void rechecked.push(userId),
    })
    return { store, people, removals, rules, secrets, models, servers, settings, rechecked, warned }
  }

  test('one with other keys does not start', async () => {
    await agent()
    await expect(agent(new Uint8Array(32).fill(8))).rejects.toThrow('Copy the folder keys')
  })

  test('one whose secrets have another key does not start; both start while it is rotated', async () => {
    const [store, other] = [await openSessionStore(url), new Uint8Array(32).fill(8)]
    closing.push(() => store.close())
    await agent()
    await expect(agent(KEY, [other])).rejects.toThrow('/keys/secrets.json has not the keys')
    await agent(KEY, [other, KEY])
    await agent(KEY, [other, KEY])
    await expect(agent(KEY, [KEY])).rejects.toThrow('/keys/secrets.json has not the keys')
    await store.replicas.changeKey('sealing_key', printOf(KEY))
  })

  test('addresses, roles and teams; and what is set for them, of which the slower of two is refused', async () => {
    const [a, b] = [await agent(), await agent()]
    a.people.record({ id: 'ada', email: 'Ada@example.org', role: 'member', teams: ['t_one'] })
    await eventually(() => b.people.get('ada')).toEqual({
      email: 'ada@example.org',
      role: 'member',
      teams: ['t_one'],
    })
    expect(b.rechecked).toContain('ada')
    const team = { kind: 'team', id: 't_one' } as const
    await a.settings.put(team, { settings: { modeCeiling: 'manual' }, revision: 0 }, 'One')
    // At once, and not yet read again: its number is not the one that is there.
    await b.settings.put(team, { settings: { modeCeiling: 'yolo' }, revision: 0 }, 'One')
    expect(b.settings.view(team)).toEqual({ settings: { modeCeiling: 'manual' }, revision: 1 })
    await eventually(() => b.settings.of('ada').modeCeiling).toBe('manual')
    expect([...a.warned, ...b.warned]).toEqual([])
  })

  test('models with their keys, and servers with their values', async () => {
    const [a, b] = [await agent(), await agent()]
    const endpoint = { name: 'Ours', baseUrl: 'https://models.example/v1', models: [{ name: 'm1' }] }
    await a.models.put(endpoint, { revision: 0, apiKey: 'sk-one' })
    await eventually(() => b.models.settings.map(({ apiKey }) => apiKey)).toEqual(['sk-one'])
    expect(b.models.names).toEqual(['m1'])
    const [made] = a.models.view.endpoints
    await b.models.put(endpoint, { id: made?.id, revision: 1, apiKey: 'sk-two' })
    await eventually(() => a.models.settings.map(({ apiKey }) => apiKey)).toEqual(['sk-two'])
    const values = { named: {}, clientSecret: 'of-the-client' }
    const id = await a.servers.put('deployment', '', SERVER, { revision: 0, values }, ROOT)
    await eventually(() =>
      b.servers.list('deployment', '').map(({ hasClientSecret, why }) => ({ hasClientSecret, why })),
    ).toEqual([{ hasClientSecret: true, why: undefined }])
    expect(b.servers.deployment.map(({ name }) => name)).toEqual(['notes'])
    await b.servers.remove('deployment', '', id, ROOT)
    await eventually(() => a.servers.deployment).toEqual([])
    await b.models.remove(made?.id ?? '')
    await eventually(() => a.models.view.endpoints).toEqual([])
    expect([...a.warned, ...b.warned]).toEqual([])
  })

  test('rules for everybody, and who is removed', async () => {
    const [a, b] = [await agent(), await agent()]
    expect(await b.rules.of('ada')).toEqual([])
    const rule = await a.rules.addForEverybody({ effect: 'deny', match: { tool: 'write_file' } }, ROOT)
    await eventually(async () => (await b.rules.of('ada')).map(({ id }) => id)).toEqual([rule.id])
    await b.rules.revokeForEverybody(rule.id, ROOT)
    await eventually(() => a.rules.of('ada')).toEqual([])

    a.people.record({ id: 'bob', email: 'bob@example.org', teams: [] })
    await eventually(() => b.people.get('bob')).toBeDefined()
    await a.store.people.known.remove('bob', 1)
    await eventually(() => b.removals.has('bob')).toBe(true)
    expect(b.people.get('bob')).toBeUndefined()
    expect([...a.warned, ...b.warned]).toEqual([])
  })
})
