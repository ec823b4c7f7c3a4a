/** `/compact`: its effect and its text; the model does not receive the command itself. */
import { methods } from '@agentclientprotocol/sdk'
import { type SessionEvent, makeSandlotEvent, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { commandIn } from '../../src/loop/compact-command.ts'
import { SUMMARY_REQUEST } from '../support/summary-request.ts'
import { modelMessages } from '../../src/history/model-messages.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { runAgent } from '../../src/plain/run-agent.ts'
import { createHttpModel } from '../../src/model/http-model.ts'
import { userMessage } from '../../src/history/session-messages.ts'
import { connect, newSession as openSession, said, text } from '../acp/test-client.ts'
import { AgentBench, ask, happened, newSession, whenIdle } from '../support/agent-fixture.ts'
import { startFakeProvider, textAnswer, toolCalls } from '../support/fake-provider.ts'
import { anyPrompts, logOf } from './any-log.ts'

const echo = (id: string) => toolCalls([{ id, name: 'echo', args: { text: 'x'.repeat(2_000) } }])
const talk = [echo('a'), textAnswer('First answer.'), textAnswer('Second answer.')]
const end = (log: readonly SessionEvent[]) => happened(log, 'prompt_ended').at(-1)

test('what is the command, and what is a message', () => {
  expect(commandIn('/compact')).toEqual({ name: 'compact' })
  expect(commandIn('  /compact  the colour\nand the size ')).toEqual({
    name: 'compact',
    focus: 'the colour\nand the size',
  })
  for (const words of ['/compactor', 'please /compact', '/ compact', '/COMPACT', 'compact'])
    expect(commandIn(words)).toBeUndefined()
})

describe('/compact', () => {
  test('a summary stands for all but the last exchange; it says so; everything stays in the log', async () => {
    await using bench = await AgentBench.start([...talk, textAnswer('They like blue.'), textAnswer('Third.')])
    const session = await newSession(await bench.core())
    await ask(session, 'first')
    await ask(session, 'second')
    const before = session.log
    await ask(session, '/compact the colour')
    expect(session.log.slice(0, before.length)).toEqual(before)
    expect(happened(session.log, 'compacted')).toMatchObject([{ why: 'asked', summary: 'They like blue.' }])
    expect(end(session.log)).toMatchObject({
      reason: 'completed',
      command: { name: 'compact', did: 'done' },
      text: expect.stringMatching(/shorter.* It takes about \d+ of 32,000 tokens now; it took [\d,]+\.$/),
    })
    const asked = bench.provider.requests[3]?.body.messages ?? []
    expect(asked.at(-1)?.content).toBe(`${SUMMARY_REQUEST}\n\nThe user asks you not to lose this: the colour`)
    await ask(session, 'third')
    const next = bench.provider.requests[4]?.body.messages ?? []
    expect(next.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user'])
    expect(next[1]?.content).toContain('<summary>\nThey like blue.\n</summary>')
    expect(next[2]?.content).toBe('Second answer.')
    expect(next[3]?.content).toBe('third')
    expect(JSON.stringify(next)).not.toContain('/compact')
    expect(session.summary().title).toBe('First')
  })

  test('nothing to compact: an answer that says so, no request, and no title made of it', async () => {
    await using bench = await AgentBench.start([textAnswer('Only answer.')])
    const session = await newSession(await bench.core())
    await ask(session, '/compact')
    expect(end(session.log)).toMatchObject({
      command: { did: 'nothing' },
      text: expect.stringContaining('nothing'),
    })
    expect(session.summary().title).toBeNull()
    await ask(session, 'first')
    await ask(session, '/compact')
    await ask(session, '/compact')
    expect(happened(session.log, 'prompt_ended').map((one) => one.command?.did)).toEqual([
      'nothing',
      undefined,
      'nothing',
      'nothing',
    ])
    expect(happened(session.log, 'compacted')).toEqual([])
    expect(bench.provider.requests).toHaveLength(1)
  })

  test('without a summary nothing is changed, and it says so', async () => {
    const refused = { status: 401, steps: ['{"error":{"message":"no"}}'] }
    await using bench = await AgentBench.start([...talk, refused, textAnswer('Third.')])
    const session = await newSession(await bench.core())
    for (const words of ['first', 'second', '/compact', 'third']) await ask(session, words)
    expect(happened(session.log, 'compacted')).toEqual([])
    const [, , failed] = happened(session.log, 'prompt_ended')
    expect(failed).toMatchObject({ reason: 'error', cause: 'auth', command: { did: 'failed' } })
    expect(
      bench.provider.requests
        .at(-1)
        ?.body.messages.map(({ role }) => role)
        .join(' '),
    ).toBe('system user assistant tool assistant user assistant user')
  })

  test('is refused while the agent is at work; a Stop ends it and changes nothing', async () => {
    await using bench = await AgentBench.start([...talk, { steps: [], after: 'hang' }])
    const session = await newSession(await bench.core())
    await ask(session, 'first')
    await ask(session, 'second')
    await session.prompt('/compact')
    await expect(session.prompt('/compact')).rejects.toMatchObject({ code: 'busy' })
    await expect.poll(() => bench.provider.requests.length).toBe(4)
    await session.cancel()
    await whenIdle(session)
    expect(end(session.log)).toMatchObject({ reason: 'cancelled' })
    expect(happened(session.log, 'compacted')).toEqual([])
  })

  test('a process that dies anywhere in it: it is done once, with the same end', async () => {
    const summaries = ['one', 'two'].map((words) => textAnswer(`Summary ${words}.`))
    for (let diesAt = 1; diesAt <= 6; diesAt++) {
      const provider = await startFakeProvider([...talk, ...summaries])
      const log = memoryLog()
      const model = createHttpModel({ baseUrl: provider.baseUrl, apiKey: '', model: 'fake' })
      const run = async (prompt?: string, events = Infinity): Promise<void> => {
        const running = runAgent({ model, tools: [], log, prompt })
        for (let seen = 0; seen < events; seen++) if ((await running.next()).done === true) return
        await running.return(undefined as never)
      }
      await run('first')
      await run('second')
      const before = (await log.read()).length
      await run('/compact', diesAt)
      const unfinished = sandlotEventOf((await log.read()).at(-1) as SessionEvent)?.type !== 'prompt_ended'
      if (unfinished) await run()
      const events = await log.read()
      expect(happened(events, 'compacted'), `died at ${diesAt}`).toHaveLength(1)
      expect(end(events)).toMatchObject({ reason: 'completed', command: { did: 'done' } })
      expect(events.slice(before).some((event) => metaOf(event).turn !== undefined)).toBe(false)
      while (provider.remaining > 0)
        await fetch(`${provider.baseUrl}/chat/completions`, { method: 'POST', body: '{}' })
      await provider.close()
    }
  })

  test('an editor’s user may type it; a client that knows compactions is shown one', async () => {
    for (const capabilities of [{}, { session: { compaction: {} } }]) {
      await using bench = await AgentBench.start([...talk, textAnswer('They like blue.')])
      await using one = await connect(await bench.core(), {
        capabilities: {},
        clientCapabilities: capabilities,
      })
      const sessionId = await openSession(one, { cwd: '/workspace' })
      const prompt = (words: string) =>
        one.request(methods.agent.session.prompt, { sessionId, prompt: text(words) })
      await prompt('first')
      await prompt('second')
      expect(await prompt('/compact')).toEqual({ stopReason: 'end_turn' })
      expect(said(one, sessionId)).toMatch(/Second answer\.The conversation was made shorter.*tokens/s)
      const shown = one.updates.flatMap(({ update }) =>
        update.sessionUpdate === 'compaction_update' ? [update] : [],
      )
      expect(shown).toMatchObject(
        'session' in capabilities
          ? [{ status: 'completed', summary: [{ type: 'text', text: 'They like blue.' }] }]
          : [],
      )
      const commands = one.updates.flatMap(({ update }) =>
        update.sessionUpdate === 'available_commands_update' ? update.availableCommands : [],
      )
      expect(commands.map(({ name }) => name)).toContain('compact')
    }
  })
})

test('property: whatever the log, the model is told the same with and without a command in it', () => {
  const at = { promptId: 'p_command' }
  const command = (did: 'done' | 'nothing'): SessionEvent[] => [
    makeSandlotEvent({ type: 'prompt_started', model: 'fake', command: { name: 'compact' } }, at, 1),
    userMessage({ messageId: 'm_command', text: '/compact' }, at.promptId, 1),
    makeSandlotEvent(
      {
        type: 'prompt_ended',
        stopReason: 'end_turn',
        reason: 'completed',
        text: 'Made shorter.',
        command: { name: 'compact', did },
      },
      at,
      1,
    ),
  ]
  fc.assert(
    fc.property(anyPrompts, fc.nat(40), (prompts, place) => {
      const log = logOf(prompts)
      const starts = log.flatMap((event, index) =>
        sandlotEventOf(event)?.type === 'prompt_started' ? [index] : [],
      )
      const where = starts[place % starts.length] ?? 0
      const with_ = [...log.slice(0, where), ...command('nothing'), ...log.slice(where)]
      expect(modelMessages(with_, 'system')).toEqual(modelMessages(log, 'system'))
    }),
  )
})
