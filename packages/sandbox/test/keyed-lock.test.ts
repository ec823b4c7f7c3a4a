import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'

import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createGate, createKeyedLock } from '../src/keyed-lock.ts'

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
