/** The order of the policies, pair by pair, by what a user or an operator would see if two of them changed places. */
import { isOutcome, metaOf } from '@sandlot/shared/chat/events'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ToolError } from '../../../src/tools/tool-error.ts'
import type { Tool, ToolOutcome } from '../../../src/tools/tool.ts'
import { TestBatch } from '../test-batch.ts'
import { type Run, reasonOf, tool } from './tool-fixture.ts'

/** A prompt that wants no more calls as long as `over`. */
class Limited extends TestBatch {
  over = true
  override context(): ReturnType<TestBatch['context']> {
    const refusal = { reason: 'cancelled', message: 'The call was not run: the budget is used up.' } as const
    const context = super.context()
    return {
      ...context,
      approvals: { ...context.approvals, refusal: async () => (this.over ? refusal : undefined) },
    }
  }
}

describe('once before refuse', () => {
  test.each([
    ['a write that had begun before a restart', tool('t')],
    ['one that might be made again', tool('t', { runs: { repeatable: true } })],
  ])('of %s nobody says that it was not run, whatever is used up now', async (_name, begun) => {
    const batch = new Limited({ tools: [begun] })
    batch.over = false
    await batch.run([{ id: 'a', name: 't' }], (event) => event.sessionUpdate !== 'tool_call_update')
    batch.over = true
    const [outcome] = await batch.run([{ id: 'a', name: 't' }])
    expect(reasonOf(outcome)).toBe('unknown_effect')
    expect(outcome?.forModel).not.toContain('not run')
  })
})

test('what a tool itself finds wrong with the arguments is told, though the call had begun before a restart', async () => {
  // oxlint-disable-next-line require-yield
  const refuses: Run = async function* () {
    throw new ToolError('invalid_arguments', 'There is no such flight.')
  }
  const batch = new TestBatch({ tools: [tool('t', { runs: { repeatable: true } }, refuses)] })
  await batch.run([{ id: 'a', name: 't' }], (event) => event.sessionUpdate !== 'tool_call_update')
  const [outcome] = await batch.run([{ id: 'a', name: 't' }])
  expect(reasonOf(outcome)).toBe('invalid_arguments')
  expect(outcome?.forModel).toContain('There is no such flight.')
})

describe('once before validate', () => {
  const other = { input: z.strictObject({ other: z.string().describe('Another one.') }) }

  /** The result of a call that had begun, where the tools after the restart are `now`. */
  async function afterRestart(begun: Tool, now: readonly Tool[]): Promise<ToolOutcome | undefined> {
    const before = new TestBatch({ tools: [begun] })
    await before.run([{ id: 'a', name: 't' }], (event) => event.sessionUpdate !== 'tool_call_update')
    const after = new TestBatch({ tools: now })
    after.log.push(...before.log)
    const [outcome] = await after.run([{ id: 'a', name: 't' }])
    return outcome
  }
  const inSandbox: Run = async function* () {
    yield { type: 'started', attempt: { n: 1, boot: 'b' } }
    return { status: 'completed', forModel: 'ran' }
  }

  test.each([
    ['whose arguments do not fit any more', tool('t'), [tool('t', other)]],
    ['whose tool is gone', tool('t'), []],
    [
      'that the sandbox would know, whose arguments do not fit any more',
      tool('t', { runs: { repeatable: true } }, inSandbox),
      [tool('t', other)],
    ],
    [
      'that the sandbox would know, whose tool is gone',
      tool('t', { runs: { repeatable: true } }, inSandbox),
      [],
    ],
  ])('of a call %s nobody says that nothing was run', async (_name, begun, now) => {
    const outcome = await afterRestart(begun, now)
    expect(reasonOf(outcome)).toBe('unknown_effect')
    expect(outcome?.forModel).not.toMatch(/Nothing was run|no tool/)
  })

  test('of one that only reads the model hears what is wrong with it', async () => {
    const reads = { readOnly: true, kind: 'read' } as const
    expect(reasonOf(await afterRestart(tool('t', reads), [tool('t', { ...reads, ...other })]))).toBe(
      'invalid_arguments',
    )
  })
})

describe('validate before approve', () => {
  test('nobody is asked about a call that could not run', async () => {
    const batch = new TestBatch({ tools: [tool('t')], mode: 'manual' })
    expect(reasonOf(await batch.call('t', { txet: 'x' }, 'a'))).toBe('invalid_arguments')
    expect(batch.story()).not.toContain('asked a')
  })
})

describe('refuse before approve', () => {
  test('nobody is asked about a call that the prompt no longer wants', async () => {
    const batch = new Limited({ tools: [tool('t')], mode: 'manual' })
    expect(reasonOf(await batch.call('t', {}, 'a'))).toBe('cancelled')
    expect(batch.story()).not.toContain('asked a')
  })
})

describe('approve before rate limit and cache', () => {
  test('a call that is denied takes nothing from the bucket', async () => {
    const batch = new TestBatch({
      tools: [tool('t', { runs: { rateLimit: { calls: 1, perMs: 600_000 } } })],
      mode: 'manual',
      answer: (id) => ({ allowed: id === 'b', by: 'user' }),
    })
    expect(reasonOf(await batch.call('t', {}, 'a'))).toBe('denied')
    expect(reasonOf(await batch.call('t', {}, 'b'))).toBe('completed')
  })

  test('a call that is denied gets no answer that is known already, and counts as no hit', async () => {
    const batch = new TestBatch({ tools: [tool('t', { readOnly: true, kind: 'read', runs: { cache: {} } })] })
    expect(reasonOf(await batch.call('t', {}, 'a'))).toBe('completed')
    batch.rules = [{ id: 'r', effect: 'deny', match: { tool: 't' }, origin: 'user', createdAt: 0 }]
    expect(reasonOf(await batch.call('t', {}, 'b'))).toBe('denied')
    expect(batch.metrics.getStats('t')).toMatchObject({ count: 2, cached: 0 })
  })

  test('a write that is denied drops nothing of what is known', async () => {
    let runs = 0
    // oxlint-disable-next-line require-yield
    const counts: Run = async function* () {
      return { status: 'completed', forModel: `run ${++runs}` }
    }
    const look = tool('look', { readOnly: true, kind: 'read', runs: { cache: {} } }, counts)
    const batch = new TestBatch({ tools: [look, tool('write')], mode: 'manual' })
    await batch.call('look', {})
    expect(reasonOf(await batch.call('write', {}))).toBe('denied')
    expect((await batch.call('look', {})).forModel).toBe('run 1')
  })
})

describe('in order before refuse, refuse before rate limit', () => {
  test('what the call before it used up is known, and what is refused then takes nothing from the bucket', async () => {
    // oxlint-disable-next-line require-yield
    const usesUp: Run = async function* () {
      batch.over = true
      return { status: 'completed', forModel: 'ran' }
    }
    const limited = tool('limited', { runs: { rateLimit: { calls: 1, perMs: 600_000 } } })
    const batch: Limited = new Limited({ tools: [tool('last', {}, usesUp), limited] })
    batch.over = false
    const outcomes = await batch.run([
      { id: 'a', name: 'last' },
      { id: 'b', name: 'limited' },
    ])
    expect(outcomes.map(reasonOf)).toEqual(['completed', 'cancelled'])
    batch.over = false
    expect(reasonOf(await batch.call('limited', {}))).toBe('completed')
  })
})

describe('rate limit before concurrency', () => {
  test('a call that may not be made is told so at once, and does not wait for a place first', async () => {
    const ended = Promise.withResolvers<void>()
    // oxlint-disable-next-line require-yield
    const waits: Run = async function* () {
      await ended.promise
      return { status: 'completed', forModel: 'ran' }
    }
    const narrow = {
      readOnly: true,
      runs: { concurrency: 1, rateLimit: { calls: 1, perMs: 600_000 } },
    } as const
    const batch = new TestBatch({ tools: [tool('t', narrow, waits)] })
    const calls = ['a', 'b'].map((id) => ({ id, name: 't' }))
    const outcomes = await batch.run(calls, (event) => {
      // The first one ends only when the second has its outcome.
      if (isOutcome(event) && event.toolCallId === 'b') ended.resolve()
    })
    expect(outcomes.map(reasonOf)).toEqual(['completed', 'rate_limited'])
  })
})

describe('rate limit before cache', () => {
  test('a known answer takes from the bucket like any other: the limit is on what the model may ask', async () => {
    const change = { readOnly: true, runs: { cache: {}, rateLimit: { calls: 2, perMs: 600_000 } } } as const
    const batch = new TestBatch({ tools: [tool('t', change)] })
    const reasons = []
    for (const id of ['a', 'b', 'c']) reasons.push(reasonOf(await batch.call('t', {}, id)))
    expect(reasons).toEqual(['completed', 'completed', 'rate_limited'])
  })
})

describe('save-output before cache', () => {
  test('a long answer is known too, and whole under the call that got it from there', async () => {
    let runs = 0
    const long = 'all of it '.repeat(10_000)
    // oxlint-disable-next-line require-yield
    const speaks: Run = async function* () {
      runs++
      return { status: 'completed', forModel: long }
    }
    const batch = new TestBatch({ tools: [tool('t', { readOnly: true, runs: { cache: {} } }, speaks)] })
    await batch.call('t', {}, 'a')
    const again = await batch.call('t', {}, 'b')
    expect(runs).toBe(1)
    expect(again).toMatchObject({ cached: true, outputInfo: { url: '/api/sessions/s_test/outputs/b' } })
    expect(batch.outputs.get('b')?.toString()).toBe(long)
  })
})

describe('retry before cache', () => {
  test('a known answer was not tried again, however often the call that found it was', async () => {
    let runs = 0
    // oxlint-disable-next-line require-yield
    const passes: Run = async function* () {
      if (++runs === 1) throw new ToolError('tool_error', 'not now', { transient: true })
      return { status: 'completed', forModel: 'ran' }
    }
    const change = { readOnly: true, runs: { cache: {}, idempotent: {} } } as const
    const batch = new TestBatch({ tools: [tool('t', change, passes)] })
    await batch.call('t', {}, 'a')
    await batch.call('t', {}, 'b')
    const timings = batch.log.filter(isOutcome).map((event) => metaOf(event).timing)
    expect(timings.map((timing) => timing?.retries)).toEqual([1, undefined])
    expect(timings.map((timing) => timing?.cached)).toEqual([undefined, true])
    expect(batch.metrics.getStats('t')).toMatchObject({ count: 2, retries: 1 })
  })
})

describe('retry before timeout', () => {
  test('each try has the whole limit, and the waiting between them takes nothing from it', async () => {
    const left: number[] = []
    // oxlint-disable-next-line require-yield
    const passes: Run = async function* (_args, { deadline }) {
      const remainingMs = (): number => deadline?.remainingMs() ?? 0
      left.push(remainingMs())
      if (left.length === 2) return { status: 'completed', forModel: 'ran' }
      while (remainingMs() > 59_500) await new Promise((resolve) => setTimeout(resolve, 10))
      throw new ToolError('tool_error', 'not now', { transient: true })
    }
    const batch = new TestBatch({
      tools: [tool('t', { runs: { idempotent: {} } }, passes)],
      settings: { toolTimeoutMs: 60_000 },
    })
    expect(reasonOf(await batch.call('t', {}))).toBe('completed')
    expect(left[1]).toBeGreaterThan(59_500)
  })
})

describe('metrics before all that wait and run', () => {
  test('a call that was tried twice is one call, as long as both tries and the wait between them', async () => {
    const begun: number[] = []
    // oxlint-disable-next-line require-yield
    const passes: Run = async function* () {
      begun.push(performance.now())
      if (begun.length === 1) throw new ToolError('tool_error', 'not now', { transient: true })
      return { status: 'completed', forModel: 'ran' }
    }
    const batch = new TestBatch({ tools: [tool('t', { runs: { idempotent: {} } }, passes)] })
    await batch.call('t', {})
    const [first = 0, second = 0] = begun
    const { count, meanMs } = batch.metrics.getStats('t')
    expect(count).toBe(1)
    expect(meanMs).toBeGreaterThanOrEqual(Math.floor(second - first))
  })
})
