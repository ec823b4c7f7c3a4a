import fc from 'fast-check'
import { expect, test } from 'vitest'
import { heldTool } from '../../support/agent-fixture.ts'
import { TestBatch } from '../test-batch.ts'

const calls = (keys: readonly string[]) =>
  keys.map((key) => ({ id: `c_${key}`, name: 'slow', args: { key } }))

test('so many calls of a tool at once, the others in their turn', async () => {
  const slow = heldTool('slow', true)
  const batch = new TestBatch({ tools: [{ ...slow.tool, runs: { concurrency: 2 } }] })
  const running = batch.run(calls(['a', 'b', 'c', 'd']))
  await slow.whenBegun(2)
  expect(slow.begun).toEqual(['a', 'b'])
  slow.release('b')
  await slow.whenBegun(3)
  expect(slow.begun).toEqual(['a', 'b', 'c'])
  for (const key of ['a', 'c', 'd']) slow.release(key)
  expect((await running).map(({ status }) => status)).toEqual(Array(4).fill('completed'))
})

test('whatever is cancelled meanwhile, no place is lost and none is made', async () => {
  await fc.assert(
    fc.asyncProperty(fc.subarray(['b', 'c', 'd', 'e'], { minLength: 1 }), async (cancelled) => {
      const slow = heldTool('slow', true)
      const batch = new TestBatch({ tools: [{ ...slow.tool, runs: { concurrency: 1 } }] })
      const running = batch.run(calls(['a', 'b', 'c', 'd', 'e']))
      await slow.whenBegun(1)
      for (const key of cancelled) batch.cancelOf(`c_${key}`).abort('cancelled')
      for (const key of ['a', 'b', 'c', 'd', 'e']) slow.release(key)
      const outcomes = await running
      const failed = outcomes.flatMap((outcome, at) => (outcome.status === 'failed' ? ['abcde'[at]] : []))
      expect(failed).toEqual(cancelled)
      slow.release('f')
      expect((await batch.run(calls(['f'])))[0]?.status).toBe('completed')
    }),
    { numRuns: 15 },
  )
})
