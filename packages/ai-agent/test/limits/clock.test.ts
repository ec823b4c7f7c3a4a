/** Refusals of a model under a clock that moves between any two reads: the queue always moves. */
import { queueWait, type QueueWait } from '@sandlot/shared/chat/queue-wait'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { PromptQueue } from '../../src/limits/prompt-queue.ts'
import type { Log } from '../../src/log.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

interface Warned {
  fields: Record<string, unknown>
  message: string
}

/** A log that keeps its warnings. */
function warnings(): { log: Log; warned: Warned[] } {
  const warned: Warned[] = []
  const log = {
    info: () => undefined,
    warn: (fields: Record<string, unknown>, message: string) => void warned.push({ fields, message }),
  }
  return { log, warned }
}

/** Milliseconds of fake time, and before each read one of `steps` more. */
function steppingClock(steps: readonly number[]): {
  clock: () => number
  pass: (ms: number) => Promise<void>
  reads: () => number
} {
  let now = 0
  let reads = 0
  return {
    reads: () => reads,
    clock: () => (now += steps[reads++ % steps.length] ?? 0),
    pass: async (ms) => {
      now += ms
      await vi.advanceTimersByTimeAsync(ms)
    },
  }
}

const step = fc.oneof(fc.constant(0), fc.constantFrom(0.25, 1, 5), fc.integer({ min: 0, max: 60 }))
const places = fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined })
/** Rest of the model after each of a prompt's refusals. */
const prompt = fc.record({
  person: fc.nat(2),
  model: fc.nat(1),
  refusals: fc.array(fc.constantFrom(0, 1, 5, 40), { maxLength: 3 }),
  notifiesEnd: fc.boolean(),
})

test('whatever the clock does between two reads, every prompt goes in the end', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 12 }),
      places,
      fc.array(prompt, { minLength: 1, maxLength: 7 }),
      async (steps, most, prompts) => {
        const { clock, pass } = steppingClock(steps)
        const { log, warned } = warnings()
        const queue = new PromptQueue({ slots: most, leaving: new AbortController().signal, clock, log })
        const seen: QueueWait[] = []
        let ended = 0
        const run = async (
          { person, model: m, refusals, notifiesEnd }: (typeof prompts)[number],
          n: number,
        ) => {
          const model = `model ${m}`
          const id = `p${n}`
          const place = queue.of({ id, person: `person ${person}` }, new AbortController().signal)
          for (const rest of [...refusals, undefined]) {
            for await (const wait of place.enter(model) ?? []) seen.push(wait)
            // A request takes a moment.
            await Promise.resolve()
            if (rest === undefined) place.answered(model, notifiesEnd)
            else place.refused(model, rest)
          }
          queue.leave(id)
          ended++
        }
        const all = prompts.map((one, n) => run(one, n))
        for (let rounds = 0; ended < prompts.length && rounds < 60; rounds++) await pass(50)
        expect(ended).toBe(prompts.length)
        await Promise.all(all)
        for (const wait of seen) expect(queueWait.parse(JSON.parse(JSON.stringify(wait)))).toEqual(wait)
        expect(warned).toEqual([])
        expect(vi.getTimerCount()).toBe(0)
      },
    ),
    { numRuns: 300 },
  )
})

test('a rest longer than a timer may be is waited for without spinning', async () => {
  const { clock, pass, reads } = steppingClock([0])
  const queue = new PromptQueue({
    slots: undefined,
    leaving: new AbortController().signal,
    clock,
    log: warnings().log,
  })
  const [first, second] = ['a', 'b'].map((id) => queue.of({ id, person: id }, new AbortController().signal))
  const month = 30 * 24 * 60 * 60_000
  expect(first?.enter('m')).toBeUndefined()
  first?.refused('m', month)
  const waits = second?.enter('m')
  await waits?.next()
  const gone = waits?.next()
  const before = reads()
  await pass(1_000)
  expect(reads() - before).toBeLessThan(10)
  await pass(month)
  expect((await gone)?.value).toMatchObject({ place: 0 })
})

test('a line that does not move is logged once, with what it waits for', async () => {
  const { clock, pass } = steppingClock([0])
  const { log, warned } = warnings()
  const queue = new PromptQueue({ slots: 1, leaving: new AbortController().signal, clock, log })
  const [holder, waiter] = ['a', 'b'].map((id) => queue.of({ id, person: id }, new AbortController().signal))
  expect(holder?.enter('m')).toBeUndefined()
  const waits = waiter?.enter('m')
  await waits?.next()
  await pass(9 * 60_000)
  expect(warned).toEqual([])
  await pass(60 * 60_000)
  expect(warned).toEqual([
    {
      fields: { waiting: 1, held: 1, places: 1, resting: [] },
      message: 'no queued prompt has started for ten minutes',
    },
  ])
  queue.leave('a')
  expect((await waits?.next())?.value).toMatchObject({ place: 0 })
  expect(vi.getTimerCount()).toBe(0)
})
