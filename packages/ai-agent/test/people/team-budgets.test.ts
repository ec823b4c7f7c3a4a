/** Limits of a team and of everybody, as an agent with real rows applies and reports them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AnyMessage, PROTOCOL_VERSION, client, methods } from '@agentclientprotocol/sdk'
import { EXT, type SettingsAnswer, type SettingsAsk } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import type { BudgetList } from '@sandlot/shared/admin/usage'
import { openSessionReader } from '@sandlot/storage/store/open'
import { afterAll, expect, test } from 'vitest'
import { openAgent } from '../../src/agent/agent.ts'
import { readAgentConfig } from '../../src/config/config.ts'
import { type FakeProvider, startFakeProvider, textAnswer } from '../support/fake-provider.ts'
import { LOCAL_PROCESS } from '../../../../test/config.ts'

const folder = mkdtempSync(join(tmpdir(), 'sandlot-team-budgets-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const ROOT: AgentUser = { id: 'root', role: 'admin', teams: [] }
const ADA: AgentUser = { id: 'ada', role: 'member', teams: ['t_data'] }
const BOB: AgentUser = { ...ADA, id: 'bob' }
const TEAM = { kind: 'team', id: 't_data' } as const
const USAGE = { usage: { prompt_tokens: 100_000, completion_tokens: 0 } }

async function start(provider: FakeProvider, price: number, env: Record<string, string> = {}) {
  const path = join(folder, 'sandlot.json')
  writeFileSync(path, JSON.stringify({ prices: { main: { input: price, output: 1 } } }))
  const model = { OPENAI_MODEL: 'main', OPENAI_BASE_URL: provider.baseUrl, OPENAI_API_KEY: 'k' }
  const own = { SANDLOT_DATA: folder, SANDLOT_CONFIG: path, ...LOCAL_PROCESS }
  const config = readAgentConfig([], { ...own, ...model, ...env })
  const agent = await openAgent(config, { info: () => {}, warn: () => {} })
  const there = new TransformStream<AnyMessage, AnyMessage>()
  const back = new TransformStream<AnyMessage, AnyMessage>()
  agent.serve({ readable: there.readable, writable: back.writable })
  const { agent: asked } = client({ name: 'test' })
    .onNotification('*', () => {})
    .connect({ readable: back.readable, writable: there.writable })
  await asked.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { _meta: { sandlot: { version: 1 } } },
  })
  return {
    agent,
    settings: (ask: SettingsAsk) => asked.request<SettingsAnswer>(EXT.settings, { user: ROOT, ask }),
    budgets: async (user: AgentUser) => (await asked.request<BudgetList>(EXT.budgets, { user })).budgets,
    async say(user: AgentUser): Promise<unknown> {
      const meta = { _meta: { sandlot: { user } } }
      const { sessionId } = await asked.request(methods.agent.session.new, {
        cwd: '/workspace',
        mcpServers: [],
        ...meta,
      })
      const { _meta } = await asked.request(methods.agent.session.prompt, {
        sessionId,
        prompt: [{ type: 'text', text: 'hello' }],
        ...meta,
      })
      return (_meta?.['sandlot'] as { reason?: unknown } | undefined)?.reason
    },
  }
}

test('a team’s members share what they may use up, a restart and another price change nothing of the past', async () => {
  await using stack = new AsyncDisposableStack()
  const provider = await startFakeProvider(['one', 'two', 'never'].map((text) => textAnswer(text, USAGE)))
  stack.defer(() => provider.close())
  const first = await start(provider, 10, { SANDLOT_TOTAL_COST_PER_MONTH: '50' })
  const together = { costPerDay: 1.5 }
  await first.settings({ do: 'put', subject: TEAM, name: 'Data', settings: { together }, revision: 0 })
  await expect(
    first.settings({
      do: 'put',
      subject: { kind: 'person', id: 'ada' },
      settings: { together },
      revision: 0,
    }),
  ).rejects.toThrow('is set for a team')
  expect(await first.say(ADA)).toBe('completed')
  const data = { of: 'team', name: 'Data', period: 'day', what: 'cost', limit: 1.5 }
  const all = { of: 'everybody', name: null, period: 'month', what: 'cost', limit: 50, used: 1, warns: false }
  expect(await first.budgets(BOB)).toMatchObject([{ ...data, used: 1, warns: false }, all])
  expect(await first.budgets(ROOT)).toMatchObject([all])
  await first.agent.leave()

  // Twice the price: the answer before stays at what it cost then.
  const again = await start(provider, 20)
  expect(await again.say(BOB)).toBe('completed')
  expect(await again.budgets(ADA)).toMatchObject([{ ...data, used: 3, warns: true }])
  expect(await again.say(ADA)).toBe('budget')
  expect(provider.requests).toHaveLength(2)
  const reader = await openSessionReader(join(folder, 'sessions.db'))
  stack.defer(() => reader.close())
  const people = await reader.usage.sums({ from: 0, to: 99_999 }, ['person'])
  expect(new Map(people.map(({ person, cost }) => [person, cost]))).toEqual(
    new Map([
      ['ada', 1],
      ['bob', 2],
    ]),
  )
  await again.agent.leave()
})
