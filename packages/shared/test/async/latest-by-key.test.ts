import { expect, test } from 'vitest'
import { LatestByKey } from '../../src/async/latest-by-key.ts'

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const read: T[] = []
  for await (const value of values) read.push(value)
  return read
}

test('the latest value of each key, in the order of the last change; what waits at the end is read', async () => {
  const latest = new LatestByKey<string, number>()
  latest.set('a', 1)
  latest.set('b', 2)
  latest.set('a', 3)
  latest.end()
  latest.set('c', 4)
  expect(await all(latest.values())).toEqual([2, 3])
})

test('a reader that waits gets the next value, and the end', async () => {
  const latest = new LatestByKey<string, number>()
  const read = all(latest.values())
  await Promise.resolve()
  latest.set('a', 1)
  await new Promise(setImmediate)
  latest.set('a', 2)
  await new Promise(setImmediate)
  latest.end()
  expect(await read).toEqual([1, 2])
})

test('no more than one value in a while, and the end discards what was not read by then', async () => {
  const latest = new LatestByKey<string, number>()
  latest.set('a', 1)
  const values = latest.values(50)
  const started = performance.now()
  expect(await values.next()).toEqual({ value: 1, done: false })
  latest.set('a', 2)
  latest.set('a', 3)
  expect(await values.next()).toEqual({ value: 3, done: false })
  expect(performance.now() - started).toBeGreaterThanOrEqual(50)
  latest.set('a', 4)
  const end = values.next()
  latest.end({ discard: true })
  expect(await end).toEqual({ value: undefined, done: true })
})
