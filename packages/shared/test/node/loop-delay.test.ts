import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { LoopDelay } from '../../src/node/loop-delay.ts'

test('says how long the event loop was held', async () => {
  const delay = new LoopDelay()
  expect(delay.take()).toEqual({ p50: 0, p99: 0, max: 0 })
  // It looks at the loop for the first time, then again: a hold before the first is not seen.
  await sleep(50)
  await sleep(50)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
  // Its timer may come after those of other work that is due.
  await sleep(50)
  expect(delay.take().max).toBeGreaterThan(200)
})
