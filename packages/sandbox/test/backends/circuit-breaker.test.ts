import { getEventListeners, once } from 'node:events'

import fc from 'fast-check'
import { expect, test } from 'vitest'

import { CircuitBreaker } from '../../src/backends/circuit-breaker.ts'

const QUICK = { askAfterMs: 20, answerMs: 60, retryMs: 20 }

/** A call that hangs on demand, and counts. */
function engine(options = {}) {
  const state = { hangs: false, atOnce: 0, most: 0, pings: 0, health: [] as string[] }
  const waiting = new Set<() => void>()
  const answered = async (signal: AbortSignal): Promise<void> => {
    if (!state.hangs) return
    const thawed = Promise.withResolvers<void>()
    waiting.add(thawed.resolve)
    await Promise.race([
      thawed.promise,
      once(signal, 'abort').then(() => Promise.reject(new Error('aborted'))),
    ])
  }
  const breaker = new CircuitBreaker(
    'the Docker engine at /x',
    async (signal) => {
      state.pings += 1
      state.health.push(breaker.health().state)
      await answered(signal)
    },
    { ...QUICK, ...options },
  )
  const call = (work?: Promise<unknown>, signal?: AbortSignal): Promise<string> =>
    breaker.run(async (inner) => {
      state.most = Math.max(state.most, (state.atOnce += 1))
      try {
        await work
        await answered(inner)
        return 'done'
      } finally {
        state.atOnce -= 1
      }
    }, signal)
  const thaw = (): void => {
    state.hangs = false
    for (const go of waiting) go()
  }
  return { state, breaker, call, thaw }
}

test('an engine that hangs fails every call at once, and is used again when it answers', async () => {
  const { state, breaker, call, thaw } = engine()
  expect(await call()).toBe('done')
  state.hangs = true
  const first = call()
  const second = call()
  await expect(first).rejects.toMatchObject({
    code: 'engine_unavailable',
    message: expect.stringMatching(/does not answer/),
  })
  await expect(second).rejects.toMatchObject({ code: 'engine_unavailable' })
  expect(breaker.health()).toMatchObject({
    state: expect.stringMatching(/open/),
    reason: expect.stringMatching(/does not answer/),
  })
  const before = state.most
  await expect(call()).rejects.toMatchObject({ code: 'engine_unavailable' })
  expect(state.most).toBe(before)
  await expect.poll(() => state.health).toContain('half-open')
  thaw()
  await expect.poll(() => breaker.health().state).toBe('closed')
  expect(await call()).toBe('done')
})

test('a call that takes long on an engine that lives is left alone', async () => {
  const { state, breaker, call } = engine()
  const slow = Promise.withResolvers<void>()
  const running = call(slow.promise)
  await expect.poll(() => state.pings).toBeGreaterThan(2)
  expect(breaker.health()).toEqual({ state: 'closed', running: 1, inLine: 0 })
  slow.resolve()
  expect(await running).toBe('done')
})

test('nothing is asked while nothing runs', async () => {
  const { state, call } = engine()
  await call()
  await new Promise((resolve) => setTimeout(resolve, QUICK.askAfterMs * 4))
  expect(state.pings).toBe(0)
})

test('an engine that refuses is not one that hangs', async () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const breaker = new CircuitBreaker('the Docker engine at /x', () => Promise.reject(refused), QUICK)
  const slow = Promise.withResolvers<string>()
  const running = breaker.run(() => slow.promise)
  await new Promise((resolve) => setTimeout(resolve, QUICK.askAfterMs * 4))
  expect(breaker.health().state).toBe('closed')
  slow.resolve('done')
  expect(await running).toBe('done')
})

test('the line is bounded, and leaving it frees the place', async () => {
  const { breaker, call } = engine({ atOnce: 1, inLine: 2, askAfterMs: 60_000 })
  const slow = Promise.withResolvers<void>()
  const running = call(slow.promise)
  const leaving = new AbortController()
  const left = call(undefined, leaving.signal)
  const waits = call()
  expect(breaker.health()).toEqual({ state: 'closed', running: 1, inLine: 2 })
  await expect(call()).rejects.toMatchObject({
    code: 'engine_unavailable',
    message: expect.stringMatching(/2 calls wait/),
  })
  leaving.abort()
  await expect(left).rejects.toMatchObject({ code: 'cancelled' })
  const late = call()
  slow.resolve()
  expect(await Promise.all([running, waits, late])).toEqual(['done', 'done', 'done'])
  expect(breaker.health()).toEqual({ state: 'closed', running: 0, inLine: 0 })
})

test('never more at once than allowed, and every call gets an answer, however calls come, fail and leave', async () => {
  const one = fc.record({ fails: fc.boolean(), leaves: fc.boolean(), ticks: fc.nat(3) })
  await fc.assert(
    fc.asyncProperty(
      fc.array(one, { maxLength: 30 }),
      fc.integer({ min: 1, max: 4 }),
      async (calls, atOnce) => {
        const { state, breaker, call } = engine({ atOnce, inLine: 100, askAfterMs: 60_000 })
        const outcomes = calls.map(({ fails, leaves, ticks }) => {
          const leaving = new AbortController()
          const work = (async () => {
            for (let tick = 0; tick < ticks; tick += 1) await new Promise((resolve) => setImmediate(resolve))
            if (fails) throw new Error('failed')
          })()
          work.catch(() => {})
          const outcome = call(work, leaving.signal)
          if (leaves) leaving.abort()
          return outcome
        })
        await Promise.allSettled(outcomes)
        expect(state.most).toBeLessThanOrEqual(atOnce)
        expect(breaker.health()).toEqual({ state: 'closed', running: 0, inLine: 0 })
      },
    ),
    { numRuns: 100 },
  )
})

test('a call that stopped waiting takes no slot in the queue, and one that has waited leaves no listener at the signal', async () => {
  const { breaker, call } = engine({ atOnce: 1 })
  const busy = Promise.withResolvers<void>()
  const running = call(busy.promise)
  await expect(call(undefined, AbortSignal.abort())).rejects.toMatchObject({ code: 'cancelled' })
  const lasting = new AbortController()
  const waiting = call(undefined, lasting.signal)
  expect(breaker.health()).toMatchObject({ inLine: 1 })
  busy.resolve()
  expect(await Promise.all([running, waiting])).toEqual(['done', 'done'])
  expect(getEventListeners(lasting.signal, 'abort')).toEqual([])
}, 5_000)
