import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ModelAnswer } from '../../src/model/model.ts'
import { normalizeAnswer } from '../../src/model/normalize-answer.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { runAgent } from '../../src/plain/run-agent.ts'
import { scriptedModel } from '../support/scripted-model.ts'

const deep = JSON.parse(`{"a":${'['.repeat(3_000)}${']'.repeat(3_000)}}`) as unknown
const circle: Record<string, unknown> = {}
circle['self'] = circle
circle['again'] = circle

test('what a client leaves out is empty; a whole answer is left as it is', () => {
  expect(normalizeAnswer({ text: 'Hi' })).toEqual({
    text: 'Hi',
    thought: '',
    calls: [],
    finish: 'unknown',
    usage: {},
  })
  const whole: ModelAnswer = {
    text: 'a',
    thought: 'b',
    calls: [{ id: 'c', name: 'd', args: { e: [1] }, replay: { f: 1 } }],
    finish: 'tool_calls',
    usage: { input: 1 },
    replay: [{ raw: { g: 1 } }],
  }
  expect(normalizeAnswer(whole)).toEqual(whole)
  expect(() => normalizeAnswer(undefined)).toThrow('no answer')
})

test('a call that a client gives twice is one', () => {
  const one = { id: 'a', name: 'pay', args: { x: 1, y: 2 } }
  const twice = normalizeAnswer({
    calls: [one, { ...one, args: { y: 2, x: 1 } }, { ...one, id: '' }, { ...one, id: '' }],
  })
  expect(twice.calls.map(({ id }) => id)).toEqual(['a', '', ''])
})

test('property: whatever a client returns, the prompt ends with a reason, and its calls have one outcome each', async () => {
  const anything = fc.oneof(fc.anything({ withBigInt: true }), fc.constantFrom(deep, circle))
  const call = fc.record({ id: anything, name: anything, args: anything }, { requiredKeys: [] })
  const mostly = (usual: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
    fc.oneof({ weight: 5, arbitrary: usual }, { weight: 1, arbitrary: anything })
  const answer = fc.record(
    {
      text: mostly(fc.string()),
      thought: mostly(fc.constant('')),
      calls: mostly(fc.array(call, { maxLength: 4 })),
      usage: mostly(fc.constant({})),
    },
    { requiredKeys: ['text', 'thought'] },
  )
  await fc.assert(
    fc.asyncProperty(fc.oneof(answer, anything), async (first) => {
      const model = {
        ...scriptedModel([]),
        async stream() {
          const asked = model.times++
          return (asked === 0 ? first : { text: 'Done.' }) as ModelAnswer
        },
        times: 0,
      }
      const log = memoryLog()
      const run = runAgent({ model, tools: [], log, prompt: 'go' })
      let step = await run.next()
      while (step.done !== true) step = await run.next()
      expect(['completed', 'error']).toContain(step.value.reason)
      const events = await log.read()
      const made = events.filter(({ sessionUpdate }) => sessionUpdate === 'tool_call').length
      const ended = events.filter((event) => 'status' in event && event.status === 'failed').length
      expect(ended).toBe(made)
    }),
    { numRuns: 200 },
  )
})
