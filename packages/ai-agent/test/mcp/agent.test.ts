import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { AgentBench, ask, echoTool, happened, newSession, outcomes, whenHappened } from '../agent-fixture.ts'
import { textAnswer, toolCalls } from '../fake-provider.ts'
import { type McpBench, openMcpBench, scripted } from './mcp-bench.ts'

const say = (id: string, text: string) => ({ id, name: 'say', args: { text } })

/** A core whose users have this bench's servers beside the echo tool. */
function withServers(mcp: McpBench): object {
  return {
    parts: { tools: (userId: string, signal: AbortSignal) => mcp.mcp.servers.toolsOf(userId, signal) },
  }
}

describe('a model that calls a server’s tool', () => {
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

  test('a call that may change something waits for leave, as any other; a trusted read does not', async () => {
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

  test('the tools of a prompt are the same bytes in all its requests, whatever a server says meanwhile', async () => {
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

describe('a server that asks the user something in the middle of a call', () => {
  test('gets what they fill in; their thinking is not the call’s time', async () => {
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
    await session.answer('q', 'answer', undefined, { which: 'the second' })
    await accepted.done
    expect(JSON.stringify(bench.provider.requests[1]?.body)).toContain('the second')
  })
})

describe('policies', () => {
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
