import { expect, test } from 'vitest'

import { SerialQueue } from '../../src/async/serial-queue.ts'

test('work runs one after another in the order of the calls, whatever fails', async () => {
  const queue = new SerialQueue()
  const gate = Promise.withResolvers<void>()
  const order: string[] = []
  const jobs = [
    queue.run(async () => {
      await gate.promise
      order.push('one')
      throw new Error('on purpose')
    }),
    queue.run(async () => void order.push('two')),
  ]
  expect(queue.size).toBe(2)
  const idle = queue.idle().then(() => void order.push('idle'))
  gate.resolve()
  const results = await Promise.allSettled(jobs)
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
  await idle
  expect(order).toEqual(['one', 'two', 'idle'])
  expect(queue.size).toBe(0)
})
