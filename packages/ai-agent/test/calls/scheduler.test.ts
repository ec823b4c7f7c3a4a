import { setTimeout as sleep } from 'node:timers/promises'
import {
  type SessionEvent,
  isLive,
  isOutcome,
  metaOf,
  sandlotEventOf,
  sessionEvent,
} from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { guaranteedShare, lengthLimit } from '../../src/calls/batch.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { SHUTDOWN } from '../../src/tools/tool-error.ts'
import { defineTool, type Tool } from '../../src/tools/tool.ts'
import { TestBatch } from './test-batch.ts'

/** A scripted tool that records its times. */
function scripted(name: string, readOnly: boolean, story: string[] = []): Tool {
  return defineTool({
    name,
    description: 'For tests.',
    kind: readOnly ? 'read' : 'execute',
    input: z.strictObject({
      ms: z.int().default(0).describe('How long.'),
      say: z.string().default('done').describe('What to return.'),
      deaf: z.boolean().default(false).describe('Do not notice a cancel.'),
    }),
    readOnly,
    title: () => name,
    async *execute({ ms, say, deaf }, ctx) {
      story.push(`+${ctx.ids.callId}`)
      yield { type: 'progress', message: 'working' }
      await sleep(ms, undefined, deaf ? {} : { signal: ctx.signal })
      story.push(`-${ctx.ids.callId}`)
      return { status: 'completed', forModel: say }
    },
  })
}
const call = (id: string, name: string, args: Record<string, unknown> = {}) => ({ id, name, args })
const setup = (options: ConstructorParameters<typeof TestBatch>[0] = {}) => {
  const ran: string[] = []
  const tools = [...builtinTools(), scripted('look', true, ran), scripted('change', false, ran)]
  return { ran, batch: new TestBatch({ tools, ...options }) }
}

describe('order', () => {
  test('all calls are announced before anything runs; outcomes come in call order', async () => {
    const { batch } = setup()
    const outcomes = await batch.run([
      call('a', 'look', { ms: 30, say: 'A' }),
      call('b', 'look', { say: 'B' }),
      call('c', 'nope'),
    ])
    expect(batch.story().slice(0, 3)).toEqual(['announced a', 'announced b', 'announced c'])
    expect(batch.settled().toSorted()).toEqual(['a', 'b', 'c'])
    expect(batch.settled().indexOf('b')).toBeLessThan(batch.settled().indexOf('a'))
    expect(outcomes.map(({ forModel }) => forModel.split('.')[0])).toEqual([
      'A',
      'B',
      'There is no tool named "nope"',
    ])
  })

  test('reads run together up to the limit; what changes things runs alone and in order', async () => {
    const { batch, ran } = setup({ maxConcurrent: 2 })
    const names = ['look', 'look', 'look', 'change', 'change', 'look']
    await batch.run(names.map((name, index) => call(`c${index}`, name, { ms: 5 })))
    const running = new Set<string>()
    let most = 0
    for (const step of ran) {
      const id = step.slice(1)
      if (step.startsWith('-')) running.delete(id)
      else running.add(id)
      most = Math.max(most, running.size)
      if (running.has('c3') || running.has('c4')) expect([...running]).toHaveLength(1)
    }
    expect(most).toBe(2)
    const beganAt = ['c2', 'c3', 'c4', 'c5'].map((id) => ran.indexOf(`+${id}`))
    expect(beganAt).toEqual(beganAt.toSorted((a, b) => a - b))
  })

  test('any batch: one announcement, one outcome, and the start between them, for every call', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('look', 'change', 'echo', 'nope'), { maxLength: 12 }),
        fc.integer({ min: 1, max: 10 }),
        async (names, maxConcurrent) => {
          const { batch } = setup({ maxConcurrent })
          const outcomes = await batch.run(
            names.map((name, index) => call(`c${index}`, name, { say: `${index}` })),
          )
          expect(outcomes).toHaveLength(names.length)
          for (const [index, name] of names.entries()) {
            const id = `c${index}`
            const mine = batch.story().filter((line) => line.endsWith(` ${id}`))
            // echo is called with an argument that it does not know.
            const runs = name === 'look' || name === 'change'
            expect(mine).toEqual(
              runs
                ? [`announced ${id}`, `in_progress ${id}`, `completed ${id}`]
                : [`announced ${id}`, `failed ${id}`],
            )
            if (runs) expect(outcomes[index]?.forModel).toBe(`${index}`)
          }
        },
      ),
      { numRuns: 25 },
    )
  })

  test('a tool goes on only after its event was stored', async () => {
    const { batch, ran } = setup()
    await batch.run([call('a', 'change')], async (event) => {
      await sleep(5)
      if (metaOf(event).progress !== undefined) expect(ran).toEqual(['+a'])
      if (event.sessionUpdate === 'tool_call') expect(ran).toEqual([])
    })
    expect(ran).toEqual(['+a', '-a'])
  })
})

describe('a call that changes things', () => {
  test('is in the log as begun before its tool runs, though the tool says nothing of it', async () => {
    let loggedBefore: string[] = []
    const batch = new TestBatch({
      tools: [
        defineTool({
          name: 'press',
          description: 'Presses the button.',
          kind: 'other',
          input: z.strictObject({}),
          readOnly: false,
          title: () => 'Press',
          // oxlint-disable-next-line require-yield
          async *execute() {
            loggedBefore = batch.story()
            return { status: 'completed', forModel: 'Pressed.' }
          },
        }),
      ],
    })
    await batch.run([call('a', 'press', {})])
    expect(loggedBefore).toEqual(['announced a', 'in_progress a'])
    expect(batch.story()).toEqual(['announced a', 'in_progress a', 'completed a'])
  })
})

describe('events', () => {
  test('are those of the vocabulary, carry prompt, turn and time, and live ones are marked', async () => {
    const { batch } = setup({
      mode: 'manual',
      answer: () => ({ allowed: true, optionId: 'allow_once', by: 'user' }),
    })
    await batch.run([
      call('a', 'change', { say: 'x' }),
      call('p', 'update_plan', { entries: [{ content: 'x', status: 'pending' }] }),
      call('e', 'echo', { value: 't' }),
    ])
    for (const event of batch.events) {
      expect(sessionEvent.parse(event)).toEqual(event)
      expect(metaOf(event)).toMatchObject({ v: 1, promptId: batch.promptId, turn: 1 })
    }
    expect(batch.events.filter(isLive).map((event) => metaOf(event).progress)).toEqual([
      { message: 'working' },
    ])
    const storyOf = (id: string): string[] =>
      batch.story().filter((line) => line.endsWith(` ${id}`) || line === 'plan')
    expect(storyOf('a').filter((line) => line !== 'plan')).toEqual([
      'announced a',
      'asked a',
      'in_progress a',
      'completed a',
    ])
    expect(storyOf('p')).toEqual(['announced p', 'in_progress p', 'plan', 'completed p'])
    expect(batch.log.map(sandlotEventOf).find((event) => event?.type === 'approval_asked')).toMatchObject({
      toolCallId: 'a',
      options: [
        { optionId: 'allow_once', kind: 'allow_once' },
        {
          optionId: 'allow_prompt',
          name: 'Allow for this message',
          remembers: { scope: 'prompt', rules: [{ tool: 'change' }] },
        },
        {
          optionId: 'allow_session',
          name: 'Allow for this chat',
          remembers: { scope: 'session', rules: [{ tool: 'change' }] },
        },
        {
          optionId: 'allow_always_exact',
          name: 'Always allow the tool change',
          remembers: { scope: 'always', rules: [{ tool: 'change' }] },
        },
        { optionId: 'reject_once', kind: 'reject_once' },
      ],
      why: [{ part: 'change', because: 'is a tool that may do more than read' }],
    })
    const end = batch.log.find((event) => isOutcome(event) && event.toolCallId === 'a')
    expect(end).toMatchObject({
      status: 'completed',
      rawOutput: { forModel: 'x' },
      _meta: { sandlot: { timing: { waitMs: expect.any(Number), runMs: expect.any(Number) } } },
    })
  })

  test('an announcement has what the model sent, also when it is unusable', async () => {
    const { batch } = setup()
    await batch.run([
      { id: 'a', name: 'echo', args: '{"value":"hi"}' },
      { id: 'b', name: 'write_file', args: '{"path":"a.txt","content":"half', invalid: 'truncated' },
      { id: 'c', name: 'read_file', args: { path: 'src/a.ts', offset: 3 } },
    ])
    expect(batch.log.filter((event) => event.sessionUpdate === 'tool_call')).toMatchObject([
      { name: 'echo', title: 'Echo', kind: 'other', status: 'pending', rawInput: { value: 'hi' } },
      {
        name: 'write_file',
        title: 'Write a file',
        kind: 'edit',
        rawInput: '{"path":"a.txt","content":"half',
      },
      { title: 'Read src/a.ts', kind: 'read', locations: [{ path: '/workspace/src/a.ts', line: 3 }] },
    ])
    expect(batch.log.find((event) => isOutcome(event) && event.toolCallId === 'b')).toMatchObject({
      status: 'failed',
      rawOutput: { forModel: expect.stringMatching(/cut off.*Split.*Nothing was run\./s) },
      _meta: { sandlot: { reason: 'invalid_arguments' } },
    })
  })

  test('calls that the log has announced are not announced again', async () => {
    const { batch } = setup()
    const calls = [call('a', 'look'), call('b', 'look')]
    await batch.run(calls, () => batch.log.length < 2)
    await batch.run(calls)
    expect(batch.story().filter((line) => line.startsWith('announced'))).toEqual([
      'announced a',
      'announced b',
    ])
    expect(batch.settled().toSorted()).toEqual(['a', 'b'])
  })

  test('a tool that cannot describe its arguments still runs', async () => {
    const bad = {
      ...scripted('bad', true),
      title: () => {
        throw new TypeError('no')
      },
    }
    const batch = new TestBatch({ tools: [bad] })
    expect(await batch.run([call('a', 'bad')])).toMatchObject([{ status: 'completed' }])
    expect(batch.log[0]).toMatchObject({ title: 'bad' })
  })
})

describe('cancel', () => {
  test('every unfinished call gets one outcome, also those that never began', async () => {
    const { batch, ran } = setup()
    const calls = [
      call('a', 'look'),
      call('b', 'look', { ms: 60_000 }),
      call('c', 'change', { ms: 60_000 }),
      call('d', 'look'),
      call('e', 'nope'),
    ]
    const outcomes = await batch.run(calls, (event) => {
      if (isOutcome(event) && event.toolCallId === 'a') batch.stop.abort('cancelled')
    })
    expect(outcomes.map((outcome) => (outcome.status === 'failed' ? outcome.reason : 'completed'))).toEqual([
      'completed',
      'cancelled',
      'cancelled',
      'cancelled',
      // There was nothing to wait for.
      'unknown_tool',
    ])
    // Only what the log has as begun can have had an effect.
    expect(outcomes.map(({ forModel }) => forModel.includes('was not started'))).toEqual([
      false,
      false,
      true,
      true,
      false,
    ])
    expect(batch.settled().toSorted()).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(ran.filter((step) => step.startsWith('+'))).toEqual(['+a', '+b'])
    expect(batch.metrics.getStats()).toMatchObject({
      count: 5,
      outcomes: { completed: 1, cancelled: 3, unknown_tool: 1 },
    })
  })

  test('one call alone', async () => {
    const { batch } = setup()
    const outcomes = await batch.run(
      [call('a', 'look', { ms: 60_000 }), call('b', 'look', { ms: 30 })],
      (event) => {
        if (metaOf(event).progress !== undefined) batch.cancelOf('a').abort('cancelled')
      },
    )
    expect(outcomes).toMatchObject([{ status: 'failed', reason: 'cancelled' }, { status: 'completed' }])
  })

  test('a call that waits for an answer', async () => {
    const { batch } = setup({ mode: 'manual', answer: () => new Promise(() => {}) })
    const outcomes = await batch.run([call('a', 'change'), call('b', 'look')], (event) => {
      if (sandlotEventOf(event)?.type === 'approval_asked')
        setTimeout(() => batch.stop.abort('interrupted'), 5)
    })
    expect(outcomes).toMatchObject([
      { reason: 'interrupted', forModel: expect.stringContaining('was not started') },
      { reason: 'interrupted', forModel: expect.stringContaining('was not started') },
    ])
  })

  test('a tool that does not notice is left behind two seconds later', async () => {
    const { batch } = setup()
    const outcomes = await batch.run([call('a', 'change', { ms: 4000, deaf: true })], (event) => {
      if (metaOf(event).progress !== undefined) batch.stop.abort('cancelled')
    })
    expect(batch.story()).toEqual(['announced a', 'in_progress a', 'failed a'])
    expect(outcomes).toMatchObject([{ status: 'failed', reason: 'cancelled' }])
  })

  test('a consumer that goes away ends the run at once, with nothing settled', async () => {
    const { batch } = setup()
    await batch.run(
      [call('a', 'look', { ms: 60_000 }), call('b', 'look', { ms: 60_000 })],
      (event) => metaOf(event).progress === undefined,
    )
    expect(batch.settled()).toEqual([])
  })

  test('a shutdown settles nothing', async () => {
    const { batch } = setup()
    const running = batch.run([call('a', 'look', { ms: 60_000 }), call('b', 'change')], (event) => {
      if (metaOf(event).progress !== undefined) batch.stop.abort(SHUTDOWN)
    })
    await expect(running).rejects.toBe(SHUTDOWN)
    expect(batch.settled()).toEqual([])
    expect(batch.metrics.getStats().count).toBe(0)
  })
})

describe('results', () => {
  test('are well-formed, without NUL, never empty', async () => {
    const { batch } = setup()
    const outcomes = await batch.run([
      call('a', 'look', { say: 'a\ud800b\0c' }),
      call('b', 'look', { say: ' \n' }),
    ])
    expect(outcomes.map(({ forModel }) => forModel)).toEqual([
      'a\uFFFDbc',
      'The call succeeded and returned nothing.',
    ])
  })

  test('that no tool cut are cut', async () => {
    const { batch } = setup()
    const [outcome] = await batch.run([call('a', 'look', { say: 'x'.repeat(50_000) })])
    expect(outcome?.forModel.length).toBeLessThanOrEqual(11_000)
    expect(outcome?.forModel).toContain('50,000 characters in 1 lines')
  })

  test('of one turn fit into the budget: the largest are shortened, the others are not', async () => {
    const { batch } = setup()
    const calls = Array.from({ length: 40 }, (_, index) =>
      call(`c${index}`, 'look', { say: 'y'.repeat(index < 30 ? 9000 : 100) }),
    )
    const outcomes = await batch.run(calls)
    const lengths = outcomes.map(({ forModel }) => forModel.length)
    const total = lengths.reduce((sum, length) => sum + length, 0)
    expect(total).toBeLessThanOrEqual(200_000)
    expect(total).toBeGreaterThan(190_000)
    expect(lengths.slice(30)).toEqual(Array.from({ length: 10 }, () => 100))
    expect(batch.settled().toSorted()).toEqual(calls.map(({ id }) => id).toSorted())
    const logged = batch.log.filter(isOutcome).map((event) => event.rawOutput?.forModel.length ?? 0)
    expect(logged.reduce((sum, length) => sum + length, 0)).toBe(total)
  })

  test('the budget: everything fits, nothing is shortened for nothing, nothing below its share', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(1000), { maxLength: 30 }),
        fc.integer({ min: 30, max: 5000 }),
        (lengths, budget) => {
          const limit = lengthLimit(lengths, budget)
          const total = lengths.reduce((sum, length) => sum + Math.min(length, limit), 0)
          expect(total).toBeLessThanOrEqual(budget)
          expect(limit).toBeGreaterThanOrEqual(guaranteedShare(lengths.length, budget))
          if (limit < Number.POSITIVE_INFINITY) expect(budget - total).toBeLessThan(lengths.length)
        },
      ),
    )
  })
})

/** The events of a call in an order that a fold can take. */
test('nothing of a call comes after its outcome', async () => {
  const { batch } = setup()
  await batch.run([call('a', 'look', { ms: 5 }), call('b', 'look'), call('c', 'change')])
  const over = new Set<string>()
  for (const event of batch.events) {
    const id = idOf(event)
    if (id === undefined) continue
    expect(over.has(id)).toBe(false)
    if (isOutcome(event)) over.add(id)
  }
  expect(over.size).toBe(3)
})

function idOf(event: SessionEvent): string | undefined {
  return event.sessionUpdate === 'tool_call' || event.sessionUpdate === 'tool_call_update'
    ? event.toolCallId
    : undefined
}
