/** Administration of the whole, and rules for everybody: real store, real engine of approvals. */
import { EXT } from '@sandlot/shared/acp/meta'
import { deploymentRules } from '@sandlot/shared/admin/deployment-rules'
import type { SettingRow } from '@sandlot/shared/admin/configuration'
import { toolStatsView } from '@sandlot/shared/admin/tool-stats'
import { rule } from '@sandlot/shared/chat/rules'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { judge } from '../../src/approval/engine.ts'
import { callRequest } from '../../src/approval/request.ts'
import { RuleRegistry } from '../../src/approval/rule-registry.ts'
import { ruleSettings } from '../../src/approval/config.ts'
import { createToolMetrics } from '../../src/metrics/tool-metrics.ts'
import { toolStatsView as toolStats } from '../../src/metrics/tool-stats-view.ts'
import { runShellCommand } from '../../src/tools/builtin/run-shell-command.ts'
import { AgentBench } from '../support/agent-fixture.ts'
import { ADA, connect } from './test-client.ts'

const ROOT = { id: 'u_root', role: 'admin' as const }
const SETTING: SettingRow = { name: 'PORT', value: '8002', redacted: false, source: 'default', restart: true }

let bench: AgentBench
beforeAll(async () => {
  bench = await AgentBench.start()
})
afterAll(() => bench[Symbol.asyncDispose]())

async function deployment(section?: Parameters<typeof ruleSettings>[0]) {
  const core = await bench.core()
  const metrics = createToolMetrics()
  const rules = new RuleRegistry(core.store.people.rules, ruleSettings(section), Date.now)
  const client = await connect(core, {
    parts: {
      administration: {
        toolStats: () =>
          toolStats({
            metrics,
            builtin: new Map([['glob', 'on'] as const, ['write_file', 'off'] as const]),
            since: 7,
          }),
        rules,
        settings: () => Promise.resolve([SETTING]),
      },
    },
  })
  return { client, core, metrics, rules }
}

const codeOf = async (asking: Promise<unknown>): Promise<unknown> =>
  asking.then(
    () => 'done',
    (error: unknown) => (error as { data?: { code?: string } }).data?.code,
  )

test('nothing of it is for members', async () => {
  const { client } = await deployment()
  await using _client = client
  for (const [method, params] of [
    [EXT.toolStats, {}],
    [EXT.configuration, {}],
    [EXT.deploymentRules, { ask: { do: 'list' } }],
    [EXT.sandboxes, { ask: { do: 'list' } }],
  ] as const)
    expect(await codeOf(client.request(method, { user: ADA, ...params }))).toBe('forbidden')
})

test('every tool has its figures, also one that was never called or is of a server', async () => {
  const { client, metrics } = await deployment()
  await using _client = client
  const call = { waitMs: 0, cached: false, retries: 0 }
  metrics.record({ ...call, tool: 'glob', outcome: 'completed', runMs: 10, bytes: 300, truncated: false })
  metrics.record({ ...call, tool: 'glob', outcome: 'timeout', runMs: 30, bytes: 700, truncated: true })
  metrics.record({
    ...call,
    tool: 'flights::search',
    outcome: 'completed',
    runMs: 5,
    bytes: 1,
    truncated: false,
  })
  const { since, tools } = toolStatsView.parse(await client.request(EXT.toolStats, { user: ROOT }))
  expect(since).toBe(7)
  expect(tools).toMatchObject([
    { id: 'flights::search', source: 'flights', offered: 'unknown', calls: 1, successRate: 1 },
    {
      id: 'glob',
      source: 'built-in',
      offered: 'on',
      calls: 2,
      successRate: 0.5,
      p50Ms: 10,
      p95Ms: 30,
      truncationRate: 0.5,
      outputBytes: 1_000,
    },
    { id: 'write_file', source: 'built-in', offered: 'off', calls: 0, outputBytes: 0 },
  ])
})

test('the settings are those that were read', async () => {
  const { client } = await deployment()
  await using _client = client
  expect(await client.request(EXT.configuration, { user: ROOT })).toEqual({ settings: [SETTING] })
})

test('a rule for everybody holds at once, and no rule of a person loosens what it denies', async () => {
  const { client, core, rules } = await deployment({
    deny: [],
    ask: [{ shell: 'make *' }],
    allow: [],
    remember: 'always',
    hosts: 'listed',
  })
  await using _client = client
  const ask = (what: object) => client.request(EXT.deploymentRules, { user: ROOT, ask: what })
  const push = callRequest({ tool: runShellCommand, args: { command: 'git push origin main' } })
  const verdict = async () => {
    const { verdict: said, why } = judge(push, await rules.of(ADA.id), 'yolo')
    return [said, why[0]?.because]
  }
  await rules.add(ADA.id, { effect: 'allow', match: { shell: 'git push *' } })
  const allowed = ['allow', expect.stringContaining('your rule that allows')]
  expect(await verdict()).toEqual(allowed)

  const made = rule.parse(await ask({ do: 'add', rule: { effect: 'deny', match: { shell: 'git push *' } } }))
  expect(made).toMatchObject({ origin: 'deployment', effect: 'deny' })
  expect(await verdict()).toEqual([
    'deny',
    'is what is meant by this Sandlot’s rule that denies commands that begin with git push',
  ])
  const shown = deploymentRules.parse(await ask({ do: 'list' }))
  expect(shown.configured).toMatchObject([{ effect: 'ask', match: { shell: 'make *' } }])
  expect(shown.rules).toEqual([made])
  // People see it, and it is not among their own.
  expect(await rules.list(ADA.id)).toHaveLength(1)
  expect(await client.request(EXT.rules, { user: ADA, ask: { do: 'list' } })).toMatchObject({
    deployment: [made],
  })
  // Nobody revokes it as their own.
  expect(await codeOf(client.request(EXT.rules, { user: ROOT, ask: { do: 'revoke', id: made.id } }))).toBe(
    'not_found',
  )

  await ask({ do: 'revoke', id: made.id })
  const entries = await core.store.admin.audit.page({ limit: 10 })
  const facts = { effect: 'deny', match: { shell: 'git push *' } }
  expect(entries).toMatchObject([
    { what: 'rules_changed', who: { id: ROOT.id }, before: facts },
    { what: 'rules_changed', who: { id: ROOT.id }, after: facts },
  ])
  expect(await verdict()).toEqual(allowed)
  expect(await codeOf(ask({ do: 'revoke', id: made.id }))).toBe('not_found')
  expect(await codeOf(ask({ do: 'add', rule: { effect: 'deny', match: { host: 'not a host' } } }))).toBe(
    'bad_request',
  )
})
