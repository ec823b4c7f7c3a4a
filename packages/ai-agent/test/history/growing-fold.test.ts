import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { growingFold } from '../../src/history/growing-fold.ts'
import { callsOf } from '../../src/limits/budgets.ts'
import { endingFailure } from '../../src/limits/error-policy.ts'

const prompt = fc.constantFrom('p1', 'p2')
const call = fc.constantFrom('c1', 'c2', 'c3')
const event: fc.Arbitrary<SessionEvent> = fc.oneof(
  fc
    .record({ promptId: prompt, onError: fc.constantFrom('stop', 'continue') })
    .map(({ promptId, onError }) =>
      makeSandlotEvent({ type: 'prompt_started', model: 'm', onError }, { promptId }, 1),
    ),
  fc
    .record({ promptId: prompt, messageId: call })
    .map(({ promptId, messageId }) =>
      makeSandlotEvent({ type: 'message_queued', messageId, text: 'and', as: 'queue' }, { promptId }, 2),
    ),
  fc.record({ promptId: prompt, toolCallId: call }).map(({ promptId, toolCallId }) => ({
    sessionUpdate: 'tool_call' as const,
    toolCallId,
    title: `does ${toolCallId}`,
    name: 'echo',
    kind: 'other' as const,
    status: 'pending' as const,
    rawInput: {},
    _meta: makeMeta({ promptId, turn: 1 }, 3),
  })),
  fc
    .record({
      promptId: prompt,
      toolCallId: call,
      reason: fc.constantFrom('cancelled', 'timeout'),
      fatal: fc.boolean(),
    })
    .map(({ promptId, toolCallId, reason, fatal }) => ({
      sessionUpdate: 'tool_call_update' as const,
      toolCallId,
      status: 'failed' as const,
      rawOutput: { forModel: 'no' },
      _meta: makeMeta({ promptId, turn: 1, reason, ...(fatal ? { fatal } : {}) }, 4),
    })),
)

test('a log that grows is read once, and another one from its beginning', () => {
  const read: number[] = []
  const count = growingFold(
    () => ({ events: 0 }),
    (fold, _event, place) => {
      fold.events++
      read.push(place)
    },
  )
  const log = fc.sample(event, 3)
  expect(count(log).events).toBe(3)
  log.push(...fc.sample(event, 2))
  expect(count(log).events).toBe(5)
  expect(read).toEqual([0, 1, 2, 3, 4])
  expect(count([...log]).events).toBe(5)
  log.splice(0, 5, ...fc.sample(event, 4))
  expect(count(log).events).toBe(4)
})

test('asked while it grows, the log says the same as when it is read whole', () => {
  let failures = 0
  fc.assert(
    fc.property(fc.array(event, { maxLength: 12 }), (events) => {
      const log: SessionEvent[] = []
      for (const one of events) {
        log.push(one)
        for (const promptId of ['p1', 'p2', 'p3']) {
          expect(endingFailure(log, promptId)).toEqual(endingFailure([...log], promptId))
          expect(callsOf(log, promptId)).toEqual(callsOf([...log], promptId))
          if (endingFailure(log, promptId) !== undefined) failures++
        }
      }
    }),
  )
  expect(failures, 'some prompts end by a failure').toBeGreaterThan(10)
})

test('a message that waited before its prompt began takes nothing from what that prompt wishes', () => {
  const failed: SessionEvent = {
    sessionUpdate: 'tool_call_update',
    toolCallId: 'c1',
    status: 'failed',
    rawOutput: { forModel: 'no' },
    _meta: makeMeta({ promptId: 'p1', turn: 1, reason: 'timeout' }, 3),
  }
  const log = [
    makeSandlotEvent(
      { type: 'message_queued', messageId: 'm', text: 'and', as: 'queue' },
      { promptId: 'p1' },
      1,
    ),
    makeSandlotEvent({ type: 'prompt_started', model: 'm', onError: 'stop' }, { promptId: 'p1' }, 2),
    failed,
  ]
  expect(endingFailure(log, 'p1')).toEqual({ title: 'A call', why: 'timeout' })
})
