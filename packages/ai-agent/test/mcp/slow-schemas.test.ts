/** Schemas of servers that take for ever: they cost their own person's calls, and hold up no other's. */
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { metaOf, type SessionEvent, sessionEvent } from '@sandlot/shared/chat/events'
import { failureOf } from '@sandlot/shared/chat/reasons'
import { describe, expect, test } from 'vitest'
import { checkSchema } from '../../src/mcp/schema-check.ts'
import { readServerSpecs, type ServerSpec } from '../../src/mcp/server-spec.ts'
import { mcpServersSection } from '../../src/mcp/config.ts'
import { SlowServers } from '../../src/mcp/slow-servers.ts'
import { ToolError } from '../../src/tools/tool-error.ts'
import type { Tool } from '../../src/tools/tool.ts'
import { AgentBench, newSession, outcomes, whenHappened } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'
import { type HttpServer, json, startHttpServer } from './http-server.ts'
import { batchOf, openMcpBench } from './mcp-bench.ts'

const SLOW = '^(a+)+$'
const TRAP = `${'a'.repeat(60)}!`
const many = Array.from({ length: 60_000 }, (_, index) => ({ index }))

async function announcing(inputSchema: object, result: object = {}, more: object = {}): Promise<HttpServer> {
  const server = await startHttpServer()
  server.intercept = (_request, response, message) => {
    if (message?.method === 'tools/list')
      json(response, message.id, { tools: [{ name: 'trap', inputSchema, ...more }] })
    else if (message?.method === 'tools/call') json(response, message.id, { content: [], ...result })
    else return false
    return true
  }
  return server
}

const callsOf = ({ seen }: HttpServer): number => seen.filter(({ rpc }) => rpc === 'tools/call').length

describe.each<[string, object, Record<string, unknown>]>([
  ['a pattern', { properties: { a: { pattern: SLOW } } }, { a: TRAP }],
  ['a name that is a pattern', { patternProperties: { [SLOW]: {} } }, { [TRAP]: 1 }],
  ['names by a pattern', { propertyNames: { pattern: SLOW } }, { [TRAP]: 1 }],
  ['unique items', { properties: { a: { uniqueItems: true } } }, { a: many }],
  [
    'a pattern behind references, in a negation',
    { $defs: { x: { not: { pattern: SLOW } } }, properties: { a: { items: { $ref: '#/$defs/x' } } } },
    { a: [TRAP] },
  ],
])('%s that takes for ever', (_, schema, args) => {
  test('in an input schema: the call is not made', async () => {
    await using server = await announcing({ type: 'object', ...schema })
    await using bench = openMcpBench({ web: { url: server.url } })
    expect(await batchOf(await bench.tools()).call('trap', args)).toMatchObject({
      status: 'failed',
      reason: 'schema_too_slow',
    })
    expect(callsOf(server)).toBe(0)
  })

  test('in an output schema: the call is said to have run, with what it returned', async () => {
    const outputSchema = { type: 'object', ...schema }
    const result = { content: [{ type: 'text', text: 'it is done' }], structuredContent: args }
    await using server = await announcing({ type: 'object' }, result, { outputSchema })
    await using bench = openMcpBench({ web: { url: server.url } })
    const outcome = await batchOf(await bench.tools()).call('trap', {})
    expect(outcome).toMatchObject({ status: 'failed', reason: 'schema_too_slow' })
    expect(outcome.forModel).toMatch(/^trap has run; do not call it again.*\nit is done$/s)
  })
})

describe('a server with such a schema', () => {
  test('costs a hundred calls one check, while another person’s calls go on', async () => {
    await using server = await announcing({ type: 'object', properties: { a: { pattern: SLOW } } })
    await using bench = openMcpBench({ web: { url: server.url } })
    const batch = batchOf(await bench.tools())
    const calls = Array.from({ length: 100 }, (_, index) => ({
      id: `c${index}`,
      name: 'trap',
      args: { a: TRAP, index },
    }))
    let over = false
    const all = batch.run(calls).finally(() => (over = true))
    const theirs = (await bench.tools('u_bob')).getTool('trap')?.input as Exclude<
      Tool['input'],
      { shape: object }
    >
    expect(await theirs.check({ a: 'aaa' }, 'u_bob')).toEqual([])
    expect(over).toBe(false)
    const ended = (await all).map((outcome) => outcome.status === 'failed' && outcome.reason)
    expect(new Set(ended)).toEqual(new Set(['schema_too_slow']))
    expect(callsOf(server)).toBe(0)
  })

  test('is set aside for this person with a note, until it is added again', async () => {
    await using server = await announcing({ type: 'object', properties: { a: { pattern: SLOW } } })
    await using bench = openMcpBench({ web: { url: server.url } })
    await batchOf(await bench.tools()).call('trap', { a: TRAP })
    expect((await bench.tools()).listTools()).toEqual([])
    const never = new AbortController().signal
    expect(await bench.mcp.servers.states('u_test', never)).toMatchObject([
      { state: 'unavailable', why: expect.stringContaining('removed and added again') },
    ])
    expect((await bench.tools('u_bob')).has('web::trap')).toBe(true)
    await using again = openMcpBench({ web: { url: server.url } })
    expect((await again.tools()).has('web::trap')).toBe(true)
  })
})

describe('the time of a person', () => {
  const specs = (...names: string[]): ServerSpec[] => {
    const servers = Object.fromEntries(names.map((name) => [name, { url: 'http://127.0.0.1:1/mcp' }]))
    return readServerSpecs(mcpServersSection.parse(servers), { env: {}, readFile: () => '' }, [], [])
  }
  const heavy = { type: 'array', uniqueItems: true }
  const some = Array.from({ length: 1_200 }, (_, index) => ({ index }))

  test('is a second in a minute; then the server that took the most of it is set aside', async () => {
    let now = 0
    const slow = new SlowServers(() => now)
    const [greedy, modest] = specs('greedy', 'modest') as [ServerSpec, ServerSpec]
    const check = (spec: ServerSpec, schema: object, value: unknown, userId = 'u_ada') =>
      slow.check({ spec, userId }, { ...schema }, value)
    await check(modest, {}, 1)
    const untilRefused = async (): Promise<unknown> => {
      for (;;) {
        try {
          await check(greedy, heavy, some)
        } catch (error) {
          return error
        }
      }
    }
    expect(await untilRefused()).toMatchObject({ reason: 'schema_too_slow' })
    expect(slow.whySetAside({ spec: greedy, userId: 'u_ada' })).toBeDefined()
    expect(slow.whySetAside({ spec: modest, userId: 'u_ada' })).toBeUndefined()
    await expect(check(modest, {}, 1)).rejects.toMatchObject({ reason: 'schema_too_slow' })
    expect(await check(greedy, {}, 1, 'u_bob')).toMatchObject({ fits: 'yes' })
    now += 60_000
    expect(await check(modest, {}, 1)).toMatchObject({ fits: 'yes' })
    await expect(check(greedy, {}, 1)).rejects.toBeInstanceOf(ToolError)
  }, 120_000)

  test('is not used up by a schema that is only broken', async () => {
    expect(await checkSchema({ type: 'object', $ref: '#' }, {})).toMatchObject({
      fits: 'unknown',
      timedOut: false,
    })
  })
})

describe('outside of a call', () => {
  /** A server’s tool whose schema, once `stuck` is set, takes for ever. */
  const tool = (state: { checks: number; stuck: boolean }): Tool => ({
    name: 'trap',
    description: 'Waits.',
    kind: 'other',
    readOnly: false,
    input: {
      parameters: { type: 'object', properties: {} },
      async check() {
        state.checks++
        if (state.stuck) throw new ToolError('schema_too_slow', 'It takes too long.')
        return []
      },
    },
    runs: { as: { id: 'web::trap' } },
    title: () => 'Trap',
    // oxlint-disable-next-line require-yield
    async *execute() {
      return { status: 'completed', forModel: 'ran' }
    },
  })

  test('a preview of a rule checks no call of the past again', async () => {
    const state = { checks: 0, stuck: false }
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'c1', name: 'trap', args: {} }]),
      textAnswer('ok'),
    ])
    const core = await bench.core({ tools: [tool(state)] })
    await (
      await (await newSession(core)).prompt('go')
    ).done
    expect(state.checks).toBe(1)
    state.stuck = true
    const rule = { effect: 'deny' as const, match: { tool: 'web::trap' } }
    const never = new AbortController().signal
    expect(await core.manager.rules.answer('u_ada', { do: 'preview', rule }, never)).toMatchObject({
      looked: 1,
      changedCount: 1,
    })
    expect(state.checks).toBe(1)
  })

  test('a changed call that cannot be checked in time is refused, and still waits', async () => {
    const state = { checks: 0, stuck: false }
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'c1', name: 'trap', args: {} }]),
      textAnswer('ok'),
    ])
    const session = await newSession(await bench.core({ tools: [tool(state)] }), 'manual')
    const { done } = await session.prompt('go')
    await whenHappened(session, 'approval_asked')
    state.stuck = true
    await expect(session.answer('c1', 'allow_once', { input: { a: 1 } })).rejects.toMatchObject({
      code: 'bad_request',
      message: expect.stringContaining('It takes too long.'),
    })
    await session.answer('c1', 'allow_once')
    await done
    expect(outcomes(session.log)).toEqual({ c1: ['completed'] })
  })
})

describe('its reason', () => {
  const ended = (fields: object): SessionEvent => ({
    sessionUpdate: 'tool_call_update',
    toolCallId: 'c',
    status: 'failed',
    rawOutput: { forModel: '' },
    _meta: makeMeta(fields, 0),
  })

  test('is written beside one that the version before can read', async () => {
    await using server = await announcing({ type: 'object', properties: { a: { pattern: SLOW } } })
    await using bench = openMcpBench({ web: { url: server.url } })
    const batch = batchOf(await bench.tools())
    await batch.call('trap', { a: TRAP })
    const metas = batch.log.map((event) => metaOf(sessionEvent.parse(event)))
    expect(metas.at(-1)).toMatchObject({ reason: 'unavailable', newReason: 'schema_too_slow' })
    expect(failureOf(metas.at(-1) ?? {})).toBe('schema_too_slow')
  })

  test('of a later version is an error of the tool, and damages no log', () => {
    const meta = metaOf(sessionEvent.parse(ended({ reason: 'from_the_future' })))
    expect(failureOf(meta)).toBe('tool_error')
    const both = metaOf(sessionEvent.parse(ended({ reason: 'timeout', newReason: 'from_the_future' })))
    expect(failureOf(both)).toBe('timeout')
  })
})
