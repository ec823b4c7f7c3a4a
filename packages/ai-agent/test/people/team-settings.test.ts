/** Administrators' settings for teams and people, as an agent with real rows applies them. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type AnyMessage,
  type ClientContext,
  PROTOCOL_VERSION,
  client,
  methods,
} from '@agentclientprotocol/sdk'
import { EXT, type SettingsAnswer, type SettingsAsk } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { afterEach, describe, expect, test } from 'vitest'
import { type Agent, openAgent } from '../../src/agent/agent.ts'
import { readAgentConfig } from '../../src/config/config.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { startFakeProvider, textAnswer, toolCalls } from '../support/fake-provider.ts'
import { fileFolder } from '../../../../test/folders.ts'
import { LOCAL_PROCESS } from '../../../../test/config.ts'

const folder = fileFolder('team-settings')
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const ROOT: AgentUser = { id: 'root', role: 'admin', email: 'root@example.org', teams: [] }
const ADA: AgentUser = { id: 'ada', role: 'member', email: 'Ada@Example.org', teams: [] }

interface Started {
  agent: Agent
  asked: ClientContext
  lines: string[]
  updates: unknown[]
  settings: (user: AgentUser, ask: SettingsAsk) => Promise<SettingsAnswer>
}

async function start(data: string, file: object, env: Record<string, string> = {}): Promise<Started> {
  const path = join(folder, 'sandlot.json')
  writeFileSync(path, JSON.stringify(file))
  const config = readAgentConfig(
    builtinTools().map(({ name }) => name),
    { SANDLOT_DATA: data, SANDLOT_CONFIG: path, ...LOCAL_PROCESS, ...env },
  )
  const lines: string[] = []
  const write = (_: unknown, line: string): void => void lines.push(line)
  const agent = await openAgent(config, { info: write, warn: write })
  const there = new TransformStream<AnyMessage, AnyMessage>()
  const back = new TransformStream<AnyMessage, AnyMessage>()
  agent.serve({ readable: there.readable, writable: back.writable })
  const updates: unknown[] = []
  const { agent: asked } = client({ name: 'test' })
    .onNotification('*', ({ params }) => void updates.push(params))
    .connect({ readable: back.readable, writable: there.writable })
  await asked.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { _meta: { sandlot: { version: 1 } } },
  })
  const settings = async (user: AgentUser, ask: SettingsAsk): Promise<SettingsAnswer> =>
    asked.request<SettingsAnswer>(EXT.settings, { user, ask })
  return { agent, asked, lines, updates, settings }
}
const newFolder = (): string => mkdtempSync(join(folder, 'data-'))
const ownOf = async ({ settings }: Started, user: AgentUser) =>
  (await settings(user, { do: 'own' })).effective

const FILE = {
  teams: { data: { members: ['ada@example.org', 'bob'], modeCeiling: 'auto-edit' } },
  users: { 'ada@example.org': { tools: { glob: false } } },
  limits: { users: { 'ADA@example.org': { turns: 7 } } },
}

describe('the configuration file', () => {
  test('is the first rows, once: what is changed afterwards stays, and the log says so', async () => {
    const data = newFolder()
    const first = await start(data, FILE)
    expect(first.lines.join()).toContain('teams, limits.users of the configuration file were taken over')
    // She signs in for the first time, with an address that the file names.
    await first.asked.request(methods.agent.session.list, { _meta: { sandlot: { user: ADA } } })
    const subject = { kind: 'person', id: 'ada' } as const
    const { view, without, offered } = await first.settings(ROOT, { do: 'get', subject })
    expect(offered?.tools).toEqual(expect.arrayContaining(['glob', 'run_shell_command', 'allow_host']))
    expect(view).toEqual({ settings: { tools: { glob: false }, limits: { turns: 7 } }, revision: 1 })
    expect(without).toMatchObject({
      tools: { single: {} },
      limits: { turns: { from: { kind: 'deployment' } } },
    })
    expect(await ownOf(first, ADA)).toMatchObject({
      modeCeiling: { value: 'auto-edit', from: { kind: 'teams', teams: [{ name: 'data' }] } },
      limits: { turns: { value: 7, from: { kind: 'person' } } },
      tools: { single: { glob: { value: false } } },
    })
    await first.settings(ROOT, { do: 'put', subject, settings: { limits: { turns: 8 } }, revision: 1 })
    await first.agent.leave()

    const again = await start(data, FILE)
    expect(again.lines.join()).toContain('are not read any more')
    expect((await again.settings(ROOT, { do: 'get', subject })).view).toEqual({
      settings: { limits: { turns: 8 } },
      revision: 2,
    })
    // Another address of hers changes nothing, and whoever has the old one gets nothing.
    const moved = { ...ADA, email: 'lovelace@example.org' }
    expect(await ownOf(again, moved)).toMatchObject({ limits: { turns: { value: 8 } } })
    const other = { ...ADA, id: 'other' }
    expect(await ownOf(again, other)).toMatchObject({ limits: { turns: { from: { kind: 'deployment' } } } })
    await again.agent.leave()
  })

  test('says who is in its teams until the accounts have adopted them', async () => {
    const started = await start(newFolder(), FILE)
    const seeds = await started.asked.request<{ teams: { id: string }[] }>(EXT.teamSeeds, {})
    expect(seeds).toMatchObject({ teams: [{ name: 'data', members: ['ada@example.org', 'bob'] }] })
    const id = seeds.teams[0]?.id ?? ''
    expect(await started.asked.request(EXT.teamSeeds, { adopted: [id] })).toEqual({ teams: [] })
    expect(await ownOf(started, ADA)).toMatchObject({ modeCeiling: { value: 'yolo' } })
    expect(await ownOf(started, { ...ADA, teams: [id] })).toMatchObject({
      modeCeiling: { value: 'auto-edit' },
    })
    await started.agent.leave()
  })
})

describe('an administrator', () => {
  test('changes rows that nobody else may read or change; of two the second reads the first', async () => {
    const started = await start(newFolder(), {})
    const { settings, agent } = started
    const subject = { kind: 'team', id: 't_data' } as const
    const asks: SettingsAsk[] = [
      { do: 'list' },
      { do: 'get', subject },
      { do: 'put', subject, settings: {}, revision: 0 },
      { do: 'remove', subject },
      { do: 'effective', userId: 'bob', teams: [] },
    ]
    for (const ask of asks)
      await expect(settings(ADA, ask)).rejects.toMatchObject({ data: { code: 'forbidden' } })
    const put = { do: 'put', subject, revision: 0, name: 'Data' } as const
    const both = await Promise.all([
      settings(ROOT, { ...put, settings: { instructions: 'Use pandas.' } }),
      settings(ROOT, { ...put, settings: { instructions: 'Use polars.' } }),
    ])
    const view = { settings: { instructions: 'Use pandas.' }, revision: 1 }
    expect(both).toEqual([{ view }, { conflict: view }])
    const who = { userId: 'bob', email: 'bob@example.org', teams: ['t_data'] }
    expect((await settings(ROOT, { do: 'effective', ...who })).effective?.instructions).toEqual([
      { value: 'Use pandas.', from: { kind: 'teams', teams: [{ id: 't_data', name: 'Data' }] } },
    ])
    expect(started.lines.filter((line) => line.includes('put of settings'))).toHaveLength(2)
    await settings(ROOT, { do: 'remove', subject })
    expect(await settings(ROOT, { do: 'list' })).toEqual({ all: [] })
    await agent.leave()
  })

  test('reads what cannot be set, with what there is', async () => {
    const { settings, agent } = await start(newFolder(), {})
    const put = { do: 'put', subject: { kind: 'person', id: 'ada' }, revision: 0 } as const
    for (const [set, words] of [
      [{ models: ['gpt'] }, 'There is no model “gpt” here; there is '],
      [{ mcpServers: ['x'] }, 'There is no MCP server “x” here; there is none'],
      [{ tools: { gerp: false } }, 'There is no tool “gerp” here; there is '],
      [{ network: { hosts: ['10.0.0.1'] } }, '"10.0.0.1" cannot be allowed'],
    ] as const)
      await expect(settings(ROOT, { ...put, settings: structuredClone(set) as object })).rejects.toThrow(
        words,
      )
    expect((await settings(ROOT, { do: 'list' })).all).toEqual([])
    await agent.leave()
  })
})

test('a guest has no chats, no files and no sandbox, whatever the service lets through', async () => {
  const { asked, agent } = await start(newFolder(), {})
  const guest: AgentUser = { id: 'gus', role: 'guest', email: 'gus@example.org', teams: [] }
  const meta = { _meta: { sandlot: { user: guest } } }
  await expect(
    asked.request(methods.agent.session.new, { cwd: '/workspace', mcpServers: [], ...meta }),
  ).rejects.toThrow('Guests take part in chats of others')
  await expect(
    asked.request(EXT.files, { user: guest, ask: { do: 'list', path: '.' } }),
  ).rejects.toMatchObject({ data: { code: 'forbidden' } })
  // Demoted, with a chat of before.
  const member = { ...guest, role: 'member' as const }
  const { sessionId } = await asked.request(methods.agent.session.new, {
    cwd: '/workspace',
    mcpServers: [],
    _meta: { sandlot: { user: member } },
  })
  await expect(
    asked.request(methods.agent.session.prompt, {
      sessionId,
      prompt: [{ type: 'text', text: 'hello' }],
      ...meta,
    }),
  ).rejects.toThrow('Guests take part in chats of others')
  await agent.leave()
})

test('a model that is taken away is replaced in the next prompt, which says so', async () => {
  const provider = await startFakeProvider(['one', 'two', 'three'].map((text) => textAnswer(text)))
  closing.push(() => provider.close())
  const file = { models: { choices: [{ name: 'small' }, { name: 'large' }] } }
  const env = { OPENAI_MODEL: 'main', OPENAI_BASE_URL: provider.baseUrl, OPENAI_API_KEY: 'k' }
  const started = await start(newFolder(), file, env)
  const { asked, settings, updates, agent } = started
  const meta = { _meta: { sandlot: { user: ADA } } }
  const { sessionId, configOptions } = await asked.request(methods.agent.session.new, {
    cwd: '/workspace',
    mcpServers: [],
    ...meta,
  })
  const models = (options: unknown) =>
    JSON.stringify(options)
      .match(/"(main|small|large)"/g)
      ?.filter((_, at, all) => all.indexOf(_) === at)
  expect(models(configOptions)).toEqual(['"main"', '"small"', '"large"'])
  const prompt = (): Promise<unknown> =>
    asked.request(methods.agent.session.prompt, {
      sessionId,
      prompt: [{ type: 'text', text: 'hello' }],
      ...meta,
    })
  await prompt()
  const subject = { kind: 'person', id: 'ada' } as const
  await settings(ROOT, { do: 'put', subject, settings: { models: ['large', 'small'] }, revision: 0 })
  await prompt()
  await prompt()
  expect(provider.requests.map(({ body }) => body.model)).toEqual(['main', 'small', 'small'])
  const changes = JSON.stringify(updates).match(/"type":"model_changed","model":"small","why":"not_allowed"/g)
  expect(changes).toHaveLength(1)
  await expect(
    asked.request(methods.agent.session.setConfigOption, {
      sessionId,
      configId: 'model',
      value: 'main',
      ...meta,
    }),
  ).rejects.toThrow('There is no model “main” here; there is small, large.')
  await agent.leave()
})

test('a prompt that is resumed keeps to a ceiling that was set meanwhile', async () => {
  const call = { id: 'c1', name: 'run_shell_command', args: { command: 'touch x' } }
  const provider = await startFakeProvider([{ steps: [], after: 'hang' }, toolCalls([call])])
  closing.push(() => provider.close())
  const env = { OPENAI_MODEL: 'main', OPENAI_BASE_URL: provider.baseUrl, OPENAI_API_KEY: 'k' }
  const data = newFolder()
  const first = await start(data, {}, env)
  const meta = { _meta: { sandlot: { user: ADA, mode: 'yolo' } } }
  const { sessionId } = await first.asked.request(methods.agent.session.new, {
    cwd: '/workspace',
    mcpServers: [],
    ...meta,
  })
  void first.asked
    .request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text: 'hello' }], ...meta })
    .catch(() => undefined)
  await expect.poll(() => provider.requests.length).toBe(1)
  const subject = { kind: 'person', id: 'ada' } as const
  await first.settings(ROOT, { do: 'put', subject, settings: { modeCeiling: 'manual' }, revision: 0 })
  await first.agent.leave()

  const again = await start(data, {}, env)
  await again.agent.resume()
  const waiting = () => again.asked.request<{ approvals: object[] }>(EXT.approvals, { user: ADA, sessionId })
  await expect.poll(async () => (await waiting()).approvals, { timeout: 5_000 }).toHaveLength(1)
  await again.agent.leave()
})

test('tools given to a person where no one had any are there from the next prompt on, with their servers', async () => {
  const provider = await startFakeProvider(['one', 'two', 'three'].map((text) => textAnswer(text)))
  closing.push(() => provider.close())
  const server = {
    command: process.execPath,
    args: [join(import.meta.dirname, '../mcp/script-server.mjs')],
    tools: ['say'],
  }
  const started = await start(
    newFolder(),
    {
      mcpServers: { s: server },
      tools: { '*': { enabled: false }, glob: { enabled: true } },
    },
    {
      OPENAI_MODEL: 'main',
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_API_KEY: 'k',
      SANDLOT_TOOLS_ENABLED: 'false',
    },
  )
  const { asked, settings, agent } = started
  const meta = { _meta: { sandlot: { user: ADA } } }
  const serverState = async () => (await agent.listTools()).servers.find(({ name }) => name === 's')?.state
  expect(await serverState()).toBe('unknown')
  expect(agent.tools).toBe(0)
  const prompt = async (): Promise<void> => {
    const { sessionId } = await asked.request(methods.agent.session.new, {
      cwd: '/workspace',
      mcpServers: [],
      ...meta,
    })
    const text = [{ type: 'text' as const, text: 'hello' }]
    await asked.request(methods.agent.session.prompt, { sessionId, prompt: text, ...meta })
  }
  const names = (request: number): string[] =>
    (provider.requests[request]?.body.tools ?? []).map((tool) => JSON.stringify(tool))
  await prompt()
  const subject = { kind: 'person', id: 'ada' } as const
  await settings(ROOT, { do: 'put', subject, settings: { tools: true }, revision: 0 })
  await prompt()
  await settings(ROOT, { do: 'put', subject, settings: { tools: false }, revision: 1 })
  await prompt()
  expect(names(0)).toEqual([])
  expect(names(1)).toMatchObject([expect.stringContaining('"glob"'), expect.stringContaining('"say"')])
  expect(names(2)).toEqual([])
  expect(await serverState()).toBe('unknown')
  await agent.leave()
})
