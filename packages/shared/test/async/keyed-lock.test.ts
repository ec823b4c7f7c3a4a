import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'

import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createGate, createKeyedGate, createKeyedLock } from '../../src/async/keyed-lock.ts'

test('one at a time and in order for each key, whatever fails', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ key: fc.constantFrom('a', 'b', 'c'), fails: fc.boolean() }), { maxLength: 30 }),
      async (jobs) => {
        const lock = createKeyedLock()
        const inside = new Set<string>()
        const order = new Map<string, number[]>()
        const results = await Promise.allSettled(
          jobs.map(({ key, fails }, n) =>
            lock.run(key, async () => {
              expect(inside.has(key)).toBe(false)
              inside.add(key)
              order.set(key, [...(order.get(key) ?? []), n])
              await sleep(0)
              inside.delete(key)
              if (fails) throw new Error('on purpose')
              return n
            }),
          ),
        )
        expect(results.map((result) => result.status)).toEqual(
          jobs.map((job) => (job.fails ? 'rejected' : 'fulfilled')),
        )
        for (const numbers of order.values()) expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
      },
    ),
    { numRuns: 20 },
  )
})

test('different keys do not wait for each other', async () => {
  const lock = createKeyedLock()
  let release = (): void => {}
  const held = lock.run('a', () => new Promise<void>((resolve) => (release = resolve)))
  expect(await lock.run('b', async () => 'free')).toBe('free')
  release()
  await held
})

test('who does not want to wait is told that the key is held', async () => {
  const lock = createKeyedLock()
  let release = (): void => {}
  const held = lock.run('a', () => new Promise<void>((resolve) => (release = resolve)))
  expect(lock.tryRun('a', async () => 'in')).toBeUndefined()
  expect(await lock.tryRun('b', async () => 'in')).toBe('in')
  release()
  await held
  expect(await lock.run('a', async () => 'after')).toBe('after')
  await turn()
  expect(await lock.tryRun('a', async () => 'in')).toBe('in')
})

test('a gate lets so many in, and the next when one has left, failed or not', async () => {
  const gate = createGate(2)
  let inside = 0
  let most = 0
  const jobs = Array.from({ length: 10 }, (_, n) =>
    gate(async () => {
      inside += 1
      most = Math.max(most, inside)
      await sleep(1)
      inside -= 1
      if (n % 3 === 0) throw new Error('on purpose')
    }),
  )
  const results = await Promise.allSettled(jobs)
  expect(most).toBe(2)
  expect(inside).toBe(0)
  expect(results.filter((result) => result.status === 'rejected')).toHaveLength(4)
})

test('a keyed gate lets so many of each key in, in order, failed or not', async () => {
  const run = createKeyedGate(2)
  const inside = { a: 0, b: 0 }
  const began: string[] = []
  const jobs = (['a', 'a', 'a', 'b', 'a', 'b'] as const).map((key, n) =>
    run(key, async () => {
      began.push(`${key}${n}`)
      expect(++inside[key]).toBeLessThanOrEqual(2)
      await turn()
      inside[key]--
      if (n % 2 === 0) throw new Error('on purpose')
    }),
  )
  expect(began).toEqual(['a0', 'a1', 'b3', 'b5'])
  const results = await Promise.allSettled(jobs)
  expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(3)
  expect(began).toEqual(['a0', 'a1', 'b3', 'b5', 'a2', 'a4'])
})

test('who leaves the line of a gate takes no place, and whose turn has come stays', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ leaves: fc.boolean(), after: fc.nat(8) }), { minLength: 1, maxLength: 20 }),
      async (jobs) => {
        const gate = createGate(2)
        const began: number[] = []
        const results = await Promise.allSettled(
          jobs.map(({ leaves, after }, n) => {
            const leaving = new AbortController()
            const result = gate(async () => {
              began.push(n)
              await sleep(0)
              return n
            }, leaving.signal)
            if (leaves) void ticks(after).then(() => leaving.abort(new Error(`left ${n}`)))
            return result
          }),
        )
        for (const [n, result] of results.entries()) {
          expect(result.status).toBe(began.includes(n) ? 'fulfilled' : 'rejected')
          if (result.status === 'rejected') expect(result.reason).toEqual(new Error(`left ${n}`))
          if (!jobs[n]?.leaves) expect(result.status).toBe('fulfilled')
        }
        expect(began).toEqual(began.toSorted((a, b) => a - b))
        // Every slot is free again.
        let inside = 0
        const release = Promise.withResolvers<void>()
        const both = [1, 2].map(() => gate(() => ((inside += 1), release.promise)))
        expect(inside).toBe(2)
        release.resolve()
        await Promise.all(both)
      },
    ),
    { numRuns: 30 },
  )
})

async function ticks(count: number): Promise<void> {
  for (let tick = 0; tick < count; tick += 1) await sleep(0)
}
