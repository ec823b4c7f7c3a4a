import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import {
  AgentBench,
  ask,
  echoTool,
  happened,
  newSession,
  outcomes,
  whenHappened,
} from '../support/agent-fixture.ts'
import { createHttpModel } from '../../src/model/http-model.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'
import type { CallParts } from '../../src/session/parts.ts'
import { type McpBench, openMcpBench, scripted } from './mcp-bench.ts'

/** A PNG of one pixel. */
const DOT = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const say = (id: string, text: string) => ({ id, name: 'say', args: { text } })

/** A core whose users have this bench's servers beside the echo tool. */
function withServers(mcp: McpBench): { parts: Pick<CallParts, 'tools'> } {
  return {
    parts: { tools: (userId: string, signal: AbortSignal) => mcp.mcp.servers.toolsOf(userId, signal) },
  }
}

// Each has a model, a store and servers of its own, and mostly waits.
describe.concurrent('a model that calls a server’s tool', () => {
  test('gets its result, in one prompt with built-in tools', async () => {
    await using mcp = openMcpBench({ s: scripted('', { tools: ['say'] }) }, { builtin: [echoTool()] })
    await using bench = await AgentBench.start([
      toolCalls([say('a', 'from the server'), { id: 'b', name: 'echo', args: { text: 'from us' } }]),
      textAnswer('done'),
    ])
    const session = await newSession(await bench.core(withServers(mcp)))
    await ask(session, 'go')
    const [first, second] = bench.provider.requests.map(
      ({ body }) => body as { tools: { function: { name: string } }[]; messages: object[] },
    )
    expect(first?.tools.map((tool) => tool.function.name)).toEqual(['echo', 'say'])
    expect(second?.messages.slice(-2)).toMatchObject([
      { role: 'tool', tool_call_id: 'a', content: 'from the server' },
      { role: 'tool', tool_call_id: 'b', content: 'from us' },
    ])
    expect(outcomes(session.log)).toEqual({ a: ['completed'], b: ['completed'] })
  })

  test('bug 23: gets the images of results behind all results, known by their bytes; a blind model gets words', async () => {
    const pictures = (id: string) => ({ id, name: 'pictures', args: { data: DOT } })
    for (const images of [true, false]) {
      await using mcp = openMcpBench({ s: scripted('', { tools: ['say', 'pictures'] }) })
      await using bench = await AgentBench.start([
        toolCalls([pictures('a'), pictures('b'), say('c', 'last')]),
        textAnswer('done'),
      ])
      const { baseUrl } = bench.provider
      const model = createHttpModel({ baseUrl, apiKey: '', model: 'fake', profile: { images } })
      const { parts } = withServers(mcp)
      const session = await newSession(await bench.core({ parts: { ...parts, model } }))
      await ask(session, 'go')
      const messages = bench.provider.requests[1]?.body.messages ?? []
      const roles = ['assistant', 'tool', 'tool', 'tool', ...(images ? ['user'] : [])]
      expect(messages.slice(2).map(({ role }) => role)).toEqual(roles)
      const result = String(messages[3]?.content)
      expect(result).toContain('[An image, image/png, 1 × 1 pixels, 70 bytes.]')
      expect(result).toContain('[An image was left out, image/png, 5 bytes: ')
      expect(result.includes('this model takes no images')).toBe(!images)
      const sent = JSON.stringify(messages)
      expect(sent.split(`data:image/png;base64,${DOT}`)).toHaveLength(images ? 5 : 1)
      expect(sent).not.toContain('image/jpeg')
    }
  })

  test('a call that may change something waits for approval; a trusted read does not', async () => {
    await using mcp = openMcpBench({ s: scripted('', { tools: ['say', 'user'], readOnly: ['user'] }) })
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'r', name: 'user', args: {} }]),
      toolCalls([say('w', 'x')]),
      textAnswer('done'),
    ])
    const session = await newSession(await bench.core(withServers(mcp)), 'auto-edit')
    const accepted = await session.prompt('go')
    await whenHappened(session, 'approval_asked')
    expect(happened(session.log, 'approval_asked').map(({ toolCallId }) => toolCallId)).toEqual(['w'])
    await session.answer('w', 'reject_once')
    await accepted.done
    expect(outcomes(session.log)).toEqual({ r: ['completed'], w: ['failed denied'] })
  })

  test('bug 26: the tools of a prompt are the same bytes in all its requests, whatever a server says meanwhile', async () => {
    await using mcp = openMcpBench({ s: scripted('', { readOnly: ['say', 'change'] }) })
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'a', name: 'change', args: {} }]),
      toolCalls([say('b', 'x')]),
      textAnswer('first'),
      textAnswer('second'),
    ])
    const session = await newSession(await bench.core(withServers(mcp)))
    await ask(session, 'one')
    await ask(session, 'two')
    const tools = bench.provider.requests.map(({ body }) =>
      JSON.stringify((body as { tools: unknown }).tools),
    )
    expect(new Set(tools.slice(0, 3)).size).toBe(1)
    expect(tools[3]).toContain('new_one')
  })

  test('a server that dies in the middle costs one call, and the prompt goes on', async () => {
    await using mcp = openMcpBench({ s: scripted() })
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'a', name: 'die', args: {} }]),
      textAnswer('so be it'),
    ])
    const session = await newSession(await bench.core(withServers(mcp)))
    await ask(session, 'go')
    expect(outcomes(session.log)).toEqual({ a: ['failed interrupted'] })
    expect(happened(session.log, 'prompt_ended')[0]).toMatchObject({ reason: 'completed' })
  })
})

describe.concurrent('a server that asks the user something in the middle of a call', () => {
  test('gets the user’s input; waiting for it does not count as the call’s time', async () => {
    await using mcp = openMcpBench({ s: scripted('', { readOnly: ['ask'], timeoutMs: 1_000 }) })
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'q', name: 'ask', args: {} }]),
      textAnswer('done'),
    ])
    const session = await newSession(await bench.core(withServers(mcp)))
    const accepted = await session.prompt('go')
    await whenHappened(session, 'approval_asked')
    expect(happened(session.log, 'approval_asked')[0]).toMatchObject({
      toolCallId: 'q',
      question: { message: 's asks: Which one?' },
    })
    await sleep(1_200)
    await session.answer('q', 'answer', { content: { which: 'the second' } })
    await accepted.done
    expect(JSON.stringify(bench.provider.requests[1]?.body)).toContain('the second')
  })

  test('cannot send the user to a page of its choice: it gets a refusal, and the user is not asked', async () => {
    await using mcp = openMcpBench({ s: scripted('', { readOnly: ['send-to'] }) })
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'q', name: 'send_to', args: {} }]),
      textAnswer('done'),
    ])
    const session = await newSession(await bench.core(withServers(mcp)))
    await ask(session, 'go')
    expect(outcomes(session.log)).toEqual({ q: ['completed'] })
    expect(happened(session.log, 'approval_asked')).toEqual([])
    const request = bench.provider.requests[1]?.body as { messages: { content: string }[] } | undefined
    expect(request?.messages.at(-1)?.content).toMatch(/does not support URL|"decline"/)
    expect(JSON.stringify(session.log)).not.toContain('elsewhere.example')
  })
})

describe.concurrent('policies', () => {
  test('a result may be used again, a failure that may pass is tried again, and calls are limited', async () => {
    const toolSettings = {
      user: { cacheMs: 60_000 },
      'die-once': { retries: 1 },
      say: { rateLimit: { calls: 1, perMs: 60_000 } },
    }
    await using mcp = openMcpBench({
      s: scripted('', { readOnly: ['user', 'die-once', 'say'], toolSettings }),
    })
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'u1', name: 'user', args: {} }]),
      toolCalls([{ id: 'u2', name: 'user', args: {} }]),
      toolCalls([say('s1', 'x')]),
      toolCalls([say('s2', 'x')]),
      toolCalls([{ id: 'd', name: 'die_once', args: {} }]),
      textAnswer('done'),
    ])
    const session = await newSession(await bench.core(withServers(mcp)))
    await ask(session, 'go')
    expect(outcomes(session.log)).toEqual({
      d: ['completed'],
      u1: ['completed'],
      u2: ['completed'],
      s1: ['completed'],
      s2: ['failed rate_limited'],
    })
    expect(JSON.stringify(session.log)).toContain('"cached":true')
    expect(JSON.stringify(session.log)).toContain('"retries":1')
  })
})
