import { describe, expect, test } from 'vitest'
import { AgentBench, ask, echoTool, newSession, outcomes } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'
import { offeredToolsOf, offeredTools, unknownToolProblems } from '../../src/config/tool-offer.ts'
import type { AgentSettings } from '@sandlot/shared/account/agent-settings'
import { lowerMode } from '@sandlot/shared/chat/mode'
import { personalSettings } from '../support/personal-settings.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { createRegistry } from '../../src/tools/registry.ts'
import { type Tool, idOf } from '../../src/tools/tool.ts'

type OfferSettings = Parameters<typeof offeredTools>[2]

const EVERYTHING: OfferSettings = { toolsEnabled: true }
const names = (userId: string, settings: OfferSettings, tools: readonly Tool[] = builtinTools()) =>
  offeredTools(userId, tools, settings).map(({ name }) => name)
const remote: Tool = { ...echoTool(), name: 'look', runs: { as: { id: 'srv::look' }, cache: {} } }

describe('who is offered what', () => {
  test('everything, nothing, the listed built-in ones', () => {
    expect(names('u', EVERYTHING)).toEqual(builtinTools().map(({ name }) => name))
    expect(names('u', { ...EVERYTHING, toolsEnabled: false })).toEqual([])
    expect(
      names('u', { ...EVERYTHING, tools: { '*': { enabled: false }, echo: { enabled: true } } }, [
        echoTool(),
        remote,
      ]),
    ).toEqual(['echo', 'look'])
  })

  test('an operator takes single tools away, and changes what they may take', () => {
    const tools = {
      echo: { enabled: false },
      'srv::look': { timeoutMs: 7000, rateLimit: { calls: 2, perMs: 1000 }, cacheTtlMs: 50, concurrency: 3 },
    }
    expect(offeredTools('u', [echoTool(), remote], { ...EVERYTHING, tools })).toMatchObject([
      {
        runs: {
          as: { id: 'srv::look' },
          timeoutMs: 7000,
          rateLimit: { calls: 2 },
          cache: { ttlMs: 50 },
          concurrency: 3,
        },
      },
    ])
    const [never] = offeredTools('u', [remote], { ...EVERYTHING, tools: { 'srv::look': { cacheTtlMs: 0 } } })
    expect(never?.runs?.cache).toBeUndefined()
    // Configuration cannot make a tool cacheable.
    const [plain] = offeredTools('u', [echoTool()], { ...EVERYTHING, tools: { echo: { cacheTtlMs: 50 } } })
    expect(plain?.runs?.cache).toBeUndefined()
  })

  test('an administrator’s setting for a user wins over the operator’s, in both directions', () => {
    const personal = personalSettings({
      users: {
        off: { tools: false },
        on: { tools: true },
        some: { tools: { echo: true, 'srv::look': false } },
      },
    })
    const both = [echoTool(), remote]
    expect(names('off', { ...EVERYTHING, personal }, both)).toEqual([])
    expect(names('some', { ...EVERYTHING, personal }, both)).toEqual(['echo'])
    expect(names('on', { toolsEnabled: false, personal }, both)).toEqual(['echo', 'look'])
    expect(names('some', { toolsEnabled: false, personal }, both)).toEqual(['echo'])
    expect(names('constructor', { ...EVERYTHING, personal }, both)).toEqual(['echo', 'look'])
  })

  test('what a team has lost, a word about another tool does not give back', () => {
    const both = [echoTool(), remote]
    const of = (
      team: AgentSettings['tools'],
      address: AgentSettings['tools'],
      id: AgentSettings['tools'],
    ) => {
      const section = (tools: AgentSettings['tools']) => (tools === undefined ? {} : { tools })
      const personal = personalSettings(
        {
          teams: { t: { members: ['a@example.org'], ...section(team) } },
          users: { 'a@example.org': section(address), a: section(id) },
        },
        () => 'a@example.org',
      )
      return names('a', { ...EVERYTHING, personal }, both)
    }
    expect(of(undefined, undefined, undefined)).toEqual(['echo', 'look'])
    expect(of({ echo: false }, undefined, { 'srv::look': true })).toEqual(['look'])
    expect(of(false, undefined, { echo: false })).toEqual([])
    expect(of(false, { 'srv::look': true }, { echo: false })).toEqual(['look'])
    expect(of({ echo: false }, undefined, true)).toEqual(['look'])
    expect(of({ echo: false }, false, true)).toEqual(['look'])
    expect(of({ echo: true }, false, { 'srv::look': true })).toEqual(['look'])
    expect(of({ echo: false }, undefined, { echo: true })).toEqual(['echo', 'look'])
  })

  test('of tools that are off for everybody, single ones can be given at two places', () => {
    const personal = personalSettings(
      { users: { 'a@example.org': { tools: { echo: true } }, a: { tools: { 'srv::look': false } } } },
      () => 'a@example.org',
    )
    const off = { ...EVERYTHING, toolsEnabled: false, personal }
    expect(names('a', off, [echoTool(), remote])).toEqual(['echo'])
  })

  test('a built-in tool that there is not is named, with the one that was meant', () => {
    const known = builtinTools().map(idOf)
    expect(
      unknownToolProblems(
        { echo: {}, ech: {}, 'srv::any': {} },
        { 'users.u': { tools: { glop: false } } },
        known,
      ),
    ).toEqual([
      'tools: there is no tool ech; did you mean echo?',
      'users.u.tools: there is no tool glop; did you mean glob?',
    ])
  })

  test('the lower ceiling of the two holds', () => {
    expect(lowerMode('manual', 'yolo')).toBe('manual')
    expect(lowerMode('yolo', 'auto-edit')).toBe('auto-edit')
    expect(lowerMode(undefined, 'manual')).toBe('manual')
    expect(lowerMode(undefined, undefined)).toBeUndefined()
  })
})

test('a registry of everybody is made once, and a user without tools asks for none', async () => {
  const all = createRegistry()
  all.register(echoTool())
  let asked = 0
  const personal = personalSettings({ users: { off: { tools: false } } })
  const settings = { ...EVERYTHING, tools: { echo: { timeoutMs: 2000 } }, personal }
  const toolsOf = offeredToolsOf(async () => {
    asked++
    return all
  }, settings)
  const { signal } = new AbortController()
  expect(await toolsOf('a', signal)).toBe(await toolsOf('b', signal))
  expect(asked).toBe(2)
  expect((await toolsOf('off', signal)).listTools()).toEqual([])
  expect(asked).toBe(2)
})

describe('tools off', () => {
  test('no `tools` member, no word about tools, and a call that the model makes up finds nothing', async () => {
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'c1', name: 'echo', args: { text: 'x' } }]),
      textAnswer('Hello.'),
    ])
    const never = (): never => {
      throw new Error('no tool code on the way of a text')
    }
    const tools = offeredToolsOf(never, { toolsEnabled: false })
    const session = await newSession(await bench.core({ parts: { tools } }))
    await ask(session, 'hi')
    for (const { body } of bench.provider.requests) {
      expect(body).not.toHaveProperty('tools')
      expect(body).not.toHaveProperty('tool_choice')
      expect(body.messages[0]?.content).toBe('You are a test.')
    }
    expect(outcomes(session.log)).toEqual({ c1: ['failed unknown_tool'] })
  })
})
