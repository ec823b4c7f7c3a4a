import { expect, test } from 'vitest'
import { type EndingStep, endingStep } from '../../src/session/ending-step.ts'

/** Goes through the steps as a shutdown does; what was logged. */
async function goThrough(steps: readonly Omit<EndingStep, 'problem'>[]): Promise<unknown[]> {
  const logged: unknown[] = []
  const warn = (fields: Record<string, unknown>, message: string): void =>
    void logged.push({ ...fields, message })
  for (const [index, step] of steps.entries())
    await endingStep({ ...step, problem: `step ${index + 1}` }, { info: () => undefined, warn })
  return logged
}

test('a step that fails, at once or later, or that does not end in time, is logged, and the next one is made', async () => {
  let made = false
  const logged = await goThrough([
    { work: () => Promise.reject(new Error('the disk is full')), withinMs: 60_000 },
    {
      work: () => {
        throw new Error('it is closed')
      },
    },
    { work: () => new Promise(() => undefined), withinMs: 1 },
    {
      work: async () => {
        made = true
      },
      withinMs: 60_000,
    },
  ])
  expect(logged).toEqual([
    { error: 'the disk is full', message: 'step 1' },
    { error: 'it is closed', message: 'step 2' },
    { withinMs: 1, message: 'step 3' },
  ])
  expect(made).toBe(true)
})
