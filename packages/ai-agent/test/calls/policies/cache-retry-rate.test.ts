/** The three policies that a tool has to ask for. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { isOutcome, metaOf } from '@sandlot/shared/chat/events'
import { cache } from '../../../src/calls/policies/cache.ts'
import { rateLimit } from '../../../src/calls/policies/rate-limit.ts'
import { ToolError } from '../../../src/tools/tool-error.ts'
import {
  defineTool,
  type CallContext,
  type PolicyCall,
  type Tool,
  type ToolCall,
  type ToolRuns,
} from '../../../src/tools/tool.ts'
import { TestBatch } from '../test-batch.ts'

/** The part of a call's context that a policy alone reads here. */
const of = (userId: string) => ({ ids: { userId } }) as CallContext

/** A tool that counts how often it really ran. */
function counting(
  name: string,
  { readOnly = true, ...runs }: ToolRuns & { readOnly?: boolean } = {},
  run?: (nth: number) => string,
): Tool & { count: number } {
  const tool: Tool & { count: number } = {
    ...defineTool({
      name,
      description: 'For tests.',
      kind: 'fetch',
      input: z.strictObject({ of: z.record(z.string(), z.unknown()).optional().describe('Anything.') }),
      readOnly,
      title: () => name,
      // oxlint-disable-next-line require-yield
      async *execute() {
        tool.count++
        return { status: 'completed', forModel: run?.(tool.count) ?? `run ${tool.count}` }
      },
    }),
    runs,
    count: 0,
  }
  return tool
}

describe('cache', () => {
  test('the same arguments give the same result, marked in the event and in the metrics', async () => {
    const tool = counting('t', { cache: {} })
    const batch = new TestBatch({ tools: [tool] })
    const first = await batch.call('t', { of: { b: 1, a: [1, 2] } })
    const second = await batch.call('t', { of: { a: [1, 2], b: 1 } }, 'again')
    expect([first.forModel, second.forModel, tool.count]).toEqual(['run 1', 'run 1', 1])
    expect(batch.story()).toContain('in_progress again')
    const outcome = batch.log.find((event) => isOutcome(event) && event.toolCallId === 'again')
    expect(outcome && metaOf(outcome).timing).toMatchObject({ cached: true })
    expect(batch.metrics.getStats('t')).toMatchObject({ count: 2, cached: 1 })
  })

  test('other arguments, an order that means something, and tools that do not declare it are asked', async () => {
    const tool = counting('t', { cache: {} })
    const plain = counting('plain')
    const batch = new TestBatch({ tools: [tool, plain] })
    const others = [[1, 2], [2, 1], '1', 1, undefined, { a: 1 }, [['a', 1]]]
    for (const v of others) await batch.call('t', { of: { v } })
    for (const _twice of [1, 2]) await batch.call('plain', {})
    expect([tool.count, plain.count]).toEqual([others.length, 2])
  })

  test('a write or a command drops what was known', async () => {
    const tool = counting('t', { cache: {} })
    const write = counting('w', { readOnly: false })
    const batch = new TestBatch({ tools: [tool, write] })
    for (const name of ['t', 't', 'w', 't', 't']) await batch.call(name, {})
    expect([tool.count, write.count]).toEqual([2, 1])
  })

  test('another version of a tool is another key', async () => {
    const tool = counting('t', { cache: { version: '1' } })
    const batch = new TestBatch({ tools: [tool] })
    const texts: string[] = []
    for (const version of ['1', '1', '2', '1']) {
      tool.runs = { cache: { version } }
      texts.push((await batch.call('t', {})).forModel)
    }
    expect(texts).toEqual(['run 1', 'run 1', 'run 2', 'run 1'])
  })

  test('a result is kept for 300 seconds where its tool says nothing', async () => {
    const tool = counting('t', { cache: {} })
    let at = 1
    const known = cache(() => at)
    const ask = async (): Promise<string> => {
      const execute = known((call, ctx) => call.tool.execute(call.args, ctx))
      const call: ToolCall = { callId: 'c', name: 't', args: {}, tool }
      const running = execute(call as PolicyCall, of('ann'))
      let step = await running.next()
      while (step.done !== true) step = await running.next()
      return step.value.forModel
    }
    const texts = [await ask()]
    for (const ms of [299_999, 2]) {
      at += ms
      texts.push(await ask())
    }
    expect(texts).toEqual(['run 1', 'run 1', 'run 2'])
  })

  test('each user has results of their own, and only their own changes drop them', async () => {
    const tool = counting('t', { cache: {} })
    const write = counting('w', { readOnly: false })
    const known = cache()
    const ask = async (userId: string, asked: Tool): Promise<string> => {
      const execute = known((call, ctx) => call.tool.execute(call.args, ctx))
      const call = { callId: 'c', name: asked.name, args: {}, tool: asked } as PolicyCall
      const running = execute(call, of(userId))
      let step = await running.next()
      while (step.done !== true) step = await running.next()
      return step.value.forModel
    }
    expect([await ask('ann', tool), await ask('bob', tool), await ask('ann', tool)]).toEqual([
      'run 1',
      'run 2',
      'run 1',
    ])
    await ask('bob', write)
    expect([await ask('ann', tool), await ask('bob', tool)]).toEqual(['run 1', 'run 3'])
  })

  test('failures are not kept', async () => {
    const tool = counting('t', { cache: {} }, (nth) => {
      if (nth === 1) throw new ToolError('tool_error', 'not now')
      return 'now'
    })
    const batch = new TestBatch({ tools: [tool] })
    expect((await batch.call('t', {})).status).toBe('failed')
    expect((await batch.call('t', {})).forModel).toBe('now')
  })

  test('a failure that a tool returns is not kept either', async () => {
    let asked = 0
    const tool: Tool = {
      ...counting('t', { cache: {} }),
      // oxlint-disable-next-line require-yield
      async *execute() {
        return ++asked === 1
          ? { status: 'failed', reason: 'tool_error', forModel: 'not now' }
          : { status: 'completed', forModel: 'now' }
      },
    }
    const batch = new TestBatch({ tools: [tool] })
    expect((await batch.call('t', {})).status).toBe('failed')
    expect((await batch.call('t', {})).forModel).toBe('now')
  })

  test('a result is kept as long as its tool says', async () => {
    const tool = counting('t', { cache: { ttlMs: 30 } })
    const batch = new TestBatch({ tools: [tool] })
    await batch.call('t', {})
    await expect
      .poll(async () => (await batch.call('t', {})).forModel, { interval: 10, timeout: 10_000 })
      .toBe('run 2')
  })
})

describe('retry', () => {
  const failing =
    (times: number, transient = true) =>
    (nth: number): string => {
      if (nth <= times) throw new ToolError('tool_error', `failure ${nth}`, { transient })
      return `run ${nth}`
    }

  test('once, where the tool declares it and the failure may pass; reported in the result', async () => {
    const tool = counting('t', { idempotent: {} }, failing(1))
    const batch = new TestBatch({ tools: [tool] })
    expect(await batch.call('t', {}, 'a')).toMatchObject({
      status: 'completed',
      forModel: 'run 2',
      retries: 1,
    })
    expect(batch.log.filter(isOutcome).map((event) => metaOf(event).timing?.retries)).toEqual([1])
    expect(batch.metrics.getStats('t')).toMatchObject({ count: 1, successRate: 1, retries: 1 })
  })

  test.each([
    ['a tool that does not declare it', {}, failing(1)],
    ['a failure that will not pass', { idempotent: {} }, failing(1, false)],
    ['more failures than retries', { idempotent: { retries: 2 } }, failing(3)],
  ])('not %s', async (_, runs, run) => {
    const tool = counting('t', runs, run)
    const batch = new TestBatch({ tools: [tool] })
    expect(await batch.call('t', {})).toMatchObject({ status: 'failed', reason: 'tool_error' })
    expect(tool.count).toBe((runs as ToolRuns).idempotent?.retries === 2 ? 3 : 1)
  })

  test('a Stop ends the wait', async () => {
    const tool = counting('t', { idempotent: { retries: 50 } }, failing(100))
    const batch = new TestBatch({ tools: [tool] })
    const running = batch.call('t', {})
    await expect.poll(() => tool.count).toBeGreaterThan(0)
    batch.stop.abort('cancelled')
    expect(await running).toMatchObject({ status: 'failed', reason: 'cancelled' })
  })
})

describe('rate limit', () => {
  test('an empty bucket is a result with the wait, and the tool is not called', async () => {
    const tool = counting('t', { rateLimit: { calls: 2, perMs: 60_000 } })
    const batch = new TestBatch({ tools: [tool] })
    const reasons = []
    for (const _each of [1, 2, 3]) reasons.push(await batch.call('t', {}))
    expect(reasons.map(({ status }) => status)).toEqual(['completed', 'completed', 'failed'])
    expect(reasons[2]).toMatchObject({
      reason: 'rate_limited',
      forModel: expect.stringMatching(/2 times in 60 seconds.*try again in (29|30) seconds/) as string,
    })
    expect(tool.count).toBe(2)
  })

  test('each user and each tool has its own bucket', async () => {
    const run = await limiter({ calls: 1, perMs: 1_000 })
    expect([
      await run('ann', 'a'),
      await run('ann', 'a'),
      await run('bob', 'a'),
      await run('ann', 'b'),
    ]).toEqual([true, false, true, true])
  })

  test('property: never more than the bucket and what flows into it, and never less when it is full', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.integer({ min: 0, max: 900 }), { maxLength: 60 }),
        async (calls, waits) => {
          let at = 0
          const run = await limiter({ calls, perMs: 1_000 }, () => at)
          const allowed: number[] = []
          for (const wait of waits) {
            at += wait
            if (await run('ann', 'a')) allowed.push(at)
          }
          for (const [place, from] of allowed.entries()) {
            const within = allowed.slice(place).filter((time) => time - from <= 1_000).length
            expect(within).toBeLessThanOrEqual(2 * calls)
          }
          expect(allowed.length).toBeGreaterThanOrEqual(Math.min(calls, waits.length))
          expect(allowed.length).toBeLessThanOrEqual(calls + (at * calls) / 1_000)
        },
      ),
    )
  })
})

/** The policy alone, on a clock of the test's own. Answers whether the call went through. */
async function limiter(limit: { calls: number; perMs: number }, now: () => number = () => 0) {
  const execute = rateLimit(now)(
    // oxlint-disable-next-line require-yield
    async function* () {
      return { status: 'completed', forModel: '' }
    },
  )
  return async (userId: string, id: string): Promise<boolean> => {
    const call = { name: id, tool: { name: id, runs: { rateLimit: limit } } } as unknown as PolicyCall
    try {
      await execute(call, of(userId)).next()
      return true
    } catch (error) {
      if (error instanceof ToolError && error.reason === 'rate_limited') return false
      throw error
    }
  }
}
