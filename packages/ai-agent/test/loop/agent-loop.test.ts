import { isOutcome, metaOf, sandlotEventOf, textOf } from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { describe, expect, test } from 'vitest'
import {
  AgentBench,
  SYSTEM,
  ask,
  echoTool,
  happened,
  heldTool,
  newSession,
  outcomes,
  whenHappened,
} from '../support/agent-fixture.ts'
import { deltaChunk, errorAnswer, sse, textAnswer, toolCalls } from '../support/fake-provider.ts'
import { type ToolRegistry, createRegistry } from '../../src/tools/registry.ts'

const NUDGE = 'Your last answer was empty. Please answer the user now, in words, from what you know so far.'

const echoCall = (id: string, text: string) => ({ id, name: 'echo', args: { text } })

describe('a prompt', () => {
  test('an answer without calls ends it: settled message, usage, title', async () => {
    await using bench = await AgentBench.start([textAnswer('Hello there.')])
    const session = await newSession(await bench.core())
    await ask(session, 'say hello\nplease')

    expect(session.log.map((event) => metaOf(event).seq)).toEqual(session.log.map((_, index) => index + 1))
    const kinds = session.log.map((event) => metaOf(event).event?.type ?? event.sessionUpdate)
    expect(kinds).toEqual([
      'prompt_started',
      'session_info_update',
      'user_message_chunk',
      'agent_message_chunk',
      'usage_update',
      'prompt_ended',
    ])
    expect(session.summary()).toMatchObject({ title: 'Say hello', running: false, waiting: 0 })
    expect(happened(session.log, 'prompt_ended')).toEqual([
      { type: 'prompt_ended', stopReason: 'end_turn', reason: 'completed' },
    ])
    expect(session.log.find((event) => event.sessionUpdate === 'usage_update')).toMatchObject({ used: 15 })
  })

  test('onAllToolCallsComplete: two requests, the second only after all outcomes', async () => {
    const slow = heldTool('slow', true)
    await using bench = await AgentBench.start([
      toolCalls(
        [
          { id: 'call_a', name: 'slow', args: { key: 'a' } },
          { id: 'call_b', name: 'slow', args: { key: 'b' } },
          echoCall('call_c', 'c'),
          { id: 'call_d', name: 'nothing_like_it', args: {} },
        ],
        { text: 'I look.' },
      ),
      textAnswer('All done.'),
    ])
    const session = await newSession(await bench.core({ tools: [slow.tool, echoTool()] }))
    const { done } = await session.prompt('go')

    await slow.whenBegun(2)
    slow.release('b')
    await expect.poll(() => Object.keys(outcomes(session.log))).toContain('call_b')
    await expect.poll(() => Object.keys(outcomes(session.log))).toContain('call_c')
    expect(bench.provider.requests).toHaveLength(1)
    slow.release('a')
    await done

    expect(bench.provider.requests).toHaveLength(2)
    const [first, second] = bench.provider.requests.map((request) => request.body)
    expect(second?.tools).toEqual(first?.tools)
    expect(second?.messages.filter(({ role }) => role === 'system')).toEqual([
      { role: 'system', content: SYSTEM },
    ])
    expect(second?.messages.slice(0, 2)).toEqual(first?.messages)
    const [assistant, ...results] = second?.messages.slice(2) ?? []
    expect(assistant).toMatchObject({ role: 'assistant', content: 'I look.' })
    const made = assistant?.tool_calls as { id: string }[]
    expect(made.map(({ id }) => id)).toEqual(['call_a', 'call_b', 'call_c', 'call_d'])
    expect(results.map(({ role, tool_call_id }) => [role, tool_call_id])).toEqual([
      ['tool', 'call_a'],
      ['tool', 'call_b'],
      ['tool', 'call_c'],
      ['tool', 'call_d'],
    ])
    expect(results.slice(0, 3).map(({ content }) => content)).toEqual(['done a', 'done b', 'c'])

    const ids = ['call_a', 'call_b', 'call_c', 'call_d']
    expect(outcomes(session.log)).toEqual({
      call_a: ['completed'],
      call_b: ['completed'],
      call_c: ['completed'],
      call_d: ['failed unknown_tool'],
    })
    expect(happened(session.log, 'turn_ended')).toEqual([{ type: 'turn_ended', callIds: ids }])
  })

  test('the whole message is settled before its calls are announced, and all calls before one runs', async () => {
    await using bench = await AgentBench.start([
      toolCalls([echoCall('1', 'a'), echoCall('2', 'b')], { text: 'Two.', reasoning: 'Hm.' }),
      textAnswer('ok'),
    ])
    const session = await newSession(await bench.core())
    await ask(session, 'go')
    const order = session.log.map((event) =>
      isOutcome(event) ? 'outcome' : (metaOf(event).event?.type ?? event.sessionUpdate),
    )
    const said = order.indexOf('agent_message_chunk')
    expect(order.indexOf('agent_thought_chunk')).toBeLessThan(said)
    expect(said).toBeLessThan(order.indexOf('tool_call'))
    expect(order.lastIndexOf('tool_call')).toBeLessThan(order.indexOf('tool_call_update'))
    expect(order.lastIndexOf('outcome')).toBeLessThan(order.indexOf('turn_ended'))
  })

  test('ids are unique in the session; the first use keeps the provider’s', async () => {
    await using bench = await AgentBench.start([
      toolCalls([echoCall('call_0', 'a'), echoCall('call_0', 'b')]),
      toolCalls([echoCall('call_0', 'c')]),
      textAnswer('ok'),
    ])
    const session = await newSession(await bench.core())
    await ask(session, 'go')
    const ids = session.log.flatMap((event) =>
      event.sessionUpdate === 'tool_call' ? [event.toolCallId] : [],
    )
    expect(ids).toHaveLength(3)
    expect(new Set(ids).size).toBe(3)
    expect(ids[0]).toBe('call_0')
    const sent = bench.provider.requests[2]?.body.messages ?? []
    expect(sent.filter(({ role }) => role === 'tool').map(({ tool_call_id }) => tool_call_id)).toEqual(ids)
  })

  test('a second prompt extends the first: every request begins with the bytes of the one before', async () => {
    await using bench = await AgentBench.start([
      toolCalls([echoCall('1', 'a')]),
      textAnswer('first'),
      textAnswer('second'),
    ])
    const session = await newSession(await bench.core())
    await ask(session, 'one')
    await ask(session, 'two')
    const bodies = bench.provider.requests.map(({ body }) => body.messages)
    for (const [index, messages] of bodies.entries()) {
      const before = bodies[index - 1]
      if (before !== undefined)
        expect(JSON.stringify(messages)).toContain(JSON.stringify(before).slice(0, -1))
    }
    expect(bodies.at(-1)?.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ])
  })

  test('tools off: no tools member', async () => {
    await using bench = await AgentBench.start([textAnswer('ok')])
    const tools = (): Promise<ToolRegistry> => Promise.resolve(createRegistry())
    const session = await newSession(await bench.core({ parts: { tools } }))
    await ask(session, 'go')
    expect(bench.provider.requests[0]?.body).not.toHaveProperty('tools')
  })
})

describe('a model that fails', () => {
  test('401 ends the prompt with the reason and the sentence', async () => {
    await using bench = await AgentBench.start([
      errorAnswer(401, { error: { message: 'Incorrect API key provided' } }),
    ])
    const session = await newSession(await bench.core())
    await ask(session, 'go')
    const [end] = happened(session.log, 'prompt_ended')
    expect(end).toMatchObject({ stopReason: 'end_turn', reason: 'error' })
    expect(end?.text).toMatch(/401|key/i)
    expect(bench.provider.requests).toHaveLength(1)
    expect(session.running).toBe(false)
  })

  test('a stream that breaks off is asked again; what was shown stays as cut, and the wait is said', async () => {
    const half = { steps: [sse(deltaChunk({ content: 'Half an ans' }))], after: 'destroy' } as const
    await using bench = await AgentBench.start([half, textAnswer('A whole answer.')])
    const session = await newSession(await bench.core())
    const subscription = session.subscribe(0)
    await ask(session, 'go')
    subscription.close()

    const live: string[] = []
    const waits: unknown[] = []
    for await (const event of subscription.live) {
      const waited = sandlotEventOf(event)
      if (waited?.type === 'model_waited') waits.push({ ...waited, waitMs: 0 })
      if (event.sessionUpdate === 'agent_message_chunk' && metaOf(event).live) live.push(event.messageId)
    }
    const [withdrawn] = happened(session.log, 'message_withdrawn')
    expect(withdrawn).toEqual({
      type: 'message_withdrawn',
      messageId: live[0],
      why: 'stream_interrupted',
      shown: { role: 'assistant', text: 'Half an ans' },
    })
    expect(waits).toEqual([{ type: 'model_waited', why: 'stream_interrupted', waitMs: 0, retry: 1, of: 3 }])
    const settled = session.log.find((event) => event.sessionUpdate === 'agent_message_chunk')
    expect(settled).toMatchObject({ content: { text: 'A whole answer.' } })
    expect(settled).not.toMatchObject({ messageId: withdrawn?.messageId })
    const [first, second] = bench.provider.requests.map(({ raw }) => raw)
    expect(second).toBe(first)
  })

  test('gives up after four attempts, and stops at once when the wait is too long', async () => {
    const busy = errorAnswer(503, { error: { message: 'overloaded' } }, { 'x-request-id': 'req_busy' })
    const wait = errorAnswer(429, { error: { message: 'slow down' } }, { 'retry-after': '600' })
    await using bench = await AgentBench.start([busy, busy, busy, busy, wait])
    const session = await newSession(await bench.core())
    await ask(session, 'go')
    expect(bench.provider.requests).toHaveLength(4)
    await ask(session, 'again')
    expect(bench.provider.requests).toHaveLength(5)
    expect(happened(session.log, 'prompt_ended').map(({ reason }) => reason)).toEqual(['error', 'error'])
    expect(happened(session.log, 'prompt_ended')[1]?.text).toContain('10 minutes')
    expect(happened(session.log, 'prompt_ended')).toMatchObject([
      { cause: 'overloaded', requestId: 'req_busy' },
      { cause: 'rate_limit' },
    ])
    expect(happened(session.log, 'prompt_ended')[1]).not.toHaveProperty('requestId')
  })

  test('an empty answer is asked for once more, with a nudge that stays in the history', async () => {
    await using bench = await AgentBench.start([
      toolCalls([echoCall('1', 'a')]),
      textAnswer(''),
      textAnswer('Here it is.'),
      textAnswer('ok'),
    ])
    const session = await newSession(await bench.core())
    await ask(session, 'go')
    await ask(session, 'and?')
    const asked = bench.provider.requests.map(({ body }) =>
      body.messages.map(({ role, content }) => `${role}: ${String(content)}`),
    )
    expect(asked[2]?.at(-1)).toBe(`user: ${NUDGE}`)
    expect(asked[3]?.slice(-3)).toEqual([`user: ${NUDGE}`, 'assistant: Here it is.', 'user: and?'])
    expect(happened(session.log, 'prompt_ended')[0]).toEqual({
      type: 'prompt_ended',
      stopReason: 'end_turn',
      reason: 'completed',
    })
  })

  test('still empty: a sentence that names what failed', async () => {
    await using bench = await AgentBench.start([
      toolCalls([{ id: '1', name: 'echo', args: { wrong: 1 } }]),
      textAnswer(''),
      textAnswer('  '),
      textAnswer(''),
      textAnswer('ok'),
    ])
    const session = await newSession(await bench.core())
    await ask(session, 'go')
    const [end] = happened(session.log, 'prompt_ended')
    expect(end?.text).toContain('Echo (invalid arguments)')
    await ask(session, 'and?')
    const messages = bench.provider.requests[4]?.body.messages ?? []
    expect(messages.slice(-2)).toMatchObject([
      { role: 'assistant', content: end?.text },
      { role: 'user', content: 'and?' },
    ])
  })

  test('the limit of turns ends it with a text', async () => {
    const again = (n: number) => toolCalls([echoCall(`c${n}`, 'x')])
    await using bench = await AgentBench.start([again(1), again(2), again(3)])
    const session = await newSession(await bench.core({ parts: { maxTurns: 3 } }))
    await ask(session, 'go')
    const [end] = happened(session.log, 'prompt_ended')
    expect(end).toMatchObject({ stopReason: 'max_turn_requests', reason: 'max_turns' })
    expect(end?.text).toContain('limit of 3 steps')
  })

  test('an answer cut by its length limit ends with that reason', async () => {
    await using bench = await AgentBench.start([textAnswer('The first half', { finish: 'length' })])
    const session = await newSession(await bench.core())
    await ask(session, 'go')
    expect(happened(session.log, 'prompt_ended')).toEqual([
      { type: 'prompt_ended', stopReason: 'max_tokens', reason: 'length' },
    ])
  })
})

describe('a defect', () => {
  test('of the scheduler: every call gets an outcome all the same, and the model hears of it', async () => {
    await using bench = await AgentBench.start([
      toolCalls([echoCall('1', 'a'), echoCall('2', 'b')]),
      textAnswer('I see.'),
    ])
    const core = await bench.core({
      parts: {
        async *runCalls(calls, context) {
          for (const { id, name } of calls) {
            const fields = { promptId: context.ids.promptId, turn: context.ids.turn }
            yield {
              sessionUpdate: 'tool_call',
              toolCallId: id,
              title: name,
              name,
              kind: 'other',
              status: 'pending',
              rawInput: {},
              _meta: makeMeta(fields, 1),
            }
          }
          throw new Error('a bug')
        },
      },
    })
    const session = await newSession(core)
    await ask(session, 'go')
    // Neither had begun.
    expect(outcomes(session.log)).toEqual({ 1: ['failed interrupted'], 2: ['failed interrupted'] })
    expect(happened(session.log, 'prompt_ended')).toMatchObject([{ reason: 'completed' }])
    expect(core.warnings.map(({ message }) => message)).toEqual(['the scheduler threw'])
  })

  test('of the store: who waits hears it, nothing hangs, and the next message goes on with it', async () => {
    await using bench = await AgentBench.start([textAnswer('one'), textAnswer('two')])
    const core = await bench.core()
    const session = await newSession(core)
    const append = core.store.log.append.bind(core.store)
    const { done } = await session.prompt('go')
    core.store.log.append = () => Promise.reject(new Error('the disk is full'))
    await expect(done).rejects.toThrow('the disk is full')
    expect(session.running).toBe(false)
    core.store.log.append = append
    const next = await session.prompt('are you there?')
    expect(await next.done).toMatchObject({ reason: 'completed' })
    expect(happened(session.log, 'prompt_started')).toHaveLength(1)
    expect(bench.provider.requests.at(-1)?.body.messages.at(-1)?.content).toBe('are you there?')
  })
})

test('a prompt that breaks off leaves no question open whose call has ended', async () => {
  const look = heldTool('look', true)
  const change = heldTool('change', false)
  const calls = [
    { id: 'c_l', name: 'look', args: { key: 'l' } },
    { id: 'c_c', name: 'change', args: { key: 'c' } },
  ]
  await using bench = await AgentBench.start([toolCalls(calls)])
  const core = await bench.core({ tools: [look.tool, change.tool] })
  const session = await newSession(core, 'manual')
  const { done } = await session.prompt('go')
  await Promise.all([whenHappened(session, 'approval_asked'), look.whenBegun(1)])
  const { append } = core.store.log
  core.store.log.append = () => {
    core.store.log.append = append
    return Promise.reject(new Error('the disk was full for a moment'))
  }
  look.release('l')
  expect(await done).toMatchObject({ reason: 'error' })
  // The row from which the list of chats is read.
  expect(await core.store.sessions.get(session.id)).toMatchObject({ waiting: 0 })
  expect(happened(session.log, 'approval_answered')).toMatchObject([{ allowed: false, by: 'cancel' }])
  expect(Object.values(outcomes(session.log)).map(({ length }) => length)).toEqual([1, 1])
})

describe('Stop', () => {
  test('in the middle of parallel calls: one outcome each, at once usable', async () => {
    const slow = heldTool('slow', true)
    const call = (key: string) => ({ id: `call_${key}`, name: 'slow', args: { key } })
    await using bench = await AgentBench.start([
      toolCalls([call('a'), call('b'), call('c')]),
      textAnswer('Fine, what else?'),
    ])
    const session = await newSession(await bench.core({ tools: [slow.tool] }))
    const { done } = await session.prompt('go')
    await slow.whenBegun(3)
    slow.release('b')
    await expect.poll(() => outcomes(session.log)['call_b']).toBeDefined()
    await session.cancel()
    expect(await done).toMatchObject({ stopReason: 'cancelled', reason: 'cancelled' })
    expect(outcomes(session.log)).toEqual({
      call_a: ['failed cancelled'],
      call_b: ['completed'],
      call_c: ['failed cancelled'],
    })
    await ask(session, 'and now?')
    const messages = bench.provider.requests[1]?.body.messages ?? []
    expect(messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'tool',
      'tool',
      'assistant',
      'user',
    ])
  })

  test('while the model speaks: the text that was shown stays, the request is closed', async () => {
    const steps = [sse(deltaChunk({ content: 'I was about to' }))]
    await using bench = await AgentBench.start([{ steps, after: 'hang' }])
    const session = await newSession(await bench.core())
    const subscription = session.subscribe(0)
    const { done } = await session.prompt('go')
    for await (const event of subscription.live) {
      if (event.sessionUpdate === 'agent_message_chunk') break
    }
    await session.cancel()
    await done
    const said = session.log.find((event) => event.sessionUpdate === 'agent_message_chunk')
    expect(said?.sessionUpdate === 'agent_message_chunk' && textOf(said)).toBe('I was about to')
    expect(happened(session.log, 'prompt_ended')).toEqual([
      { type: 'prompt_ended', stopReason: 'cancelled', reason: 'cancelled' },
    ])
    await expect.poll(() => bench.provider.requests[0]?.aborted).toBe(true)
  })

  test('of one call: the others and the prompt go on', async () => {
    const slow = heldTool('slow', true)
    const call = (key: string) => ({ id: `call_${key}`, name: 'slow', args: { key } })
    await using bench = await AgentBench.start([toolCalls([call('a'), call('b')]), textAnswer('ok')])
    const session = await newSession(await bench.core({ tools: [slow.tool] }))
    const { done } = await session.prompt('go')
    await slow.whenBegun(2)
    await session.cancelCall('call_a')
    await expect.poll(() => outcomes(session.log)['call_a']).toEqual(['failed cancelled'])
    slow.release('b')
    expect(await done).toMatchObject({ reason: 'completed' })
    await expect(session.cancelCall('call_x')).rejects.toMatchObject({ code: 'not_found' })
  })

  test('sent right behind the prompt stops it', async () => {
    await using bench = await AgentBench.start([{ steps: [], after: 'hang' }])
    const session = await newSession(await bench.core())
    const accepted = session.prompt('go')
    const cancelled = session.cancel()
    const { done } = await accepted
    await cancelled
    expect(await done).toMatchObject({
      reason: 'cancelled',
      text: 'You stopped this.',
    })
  })
})
