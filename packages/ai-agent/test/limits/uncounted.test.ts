/** Row "budgets": which answers count as ones of which nobody knows what they cost. */
import { type TokenUsage, makeMeta } from '@sandlot/shared/chat/event-meta'
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
import { type EndReason, STOP_REASON_OF } from '@sandlot/shared/chat/reasons'
import { expect, test } from 'vitest'
import { isUncountedAnswer } from '../../src/limits/period-budgets.ts'

const meta = { promptId: 'p', turn: 1 }
const answer: SessionEvent = {
  sessionUpdate: 'agent_message_chunk',
  messageId: 'm',
  content: { type: 'text', text: 'So.' },
  _meta: makeMeta({ ...meta, requestDigest: 'd' }, 1),
}
const count = (usage?: TokenUsage): SessionEvent => ({
  sessionUpdate: 'usage_update',
  used: 1,
  size: 1,
  _meta: makeMeta({ ...meta, usage }, 1),
})
const end = (reason: EndReason): SessionEvent =>
  makeSandlotEvent({ type: 'prompt_ended', stopReason: STOP_REASON_OF[reason], reason }, meta, 1)

test('an answer without a count is one, and an estimate of how full the window is counts nothing', () => {
  expect(isUncountedAnswer([answer])).toBe(true)
  expect(isUncountedAnswer([answer, count()])).toBe(true)
  expect(isUncountedAnswer([answer, count({ input: 1, output: 1 })])).toBe(false)
  expect(isUncountedAnswer([end('completed')])).toBe(false)
})

test('it begins with a thought, a message, a call, or, when it was empty, with the end of its turn', () => {
  const begins: SessionEvent[] = [
    { ...answer, sessionUpdate: 'agent_thought_chunk', _meta: makeMeta(meta, 1) },
    { ...answer, _meta: makeMeta(meta, 1) },
    { sessionUpdate: 'tool_call', toolCallId: 'c', title: 'C', _meta: makeMeta(meta, 1) } as SessionEvent,
    makeSandlotEvent({ type: 'turn_ended', callIds: [] }, meta, 1),
  ]
  expect(begins.map((event) => isUncountedAnswer([event]))).toEqual([true, true, true, true])
  const others = [
    makeSandlotEvent({ type: 'turn_ended', callIds: ['c'] }, meta, 1),
    { ...answer, sessionUpdate: 'user_message_chunk', _meta: makeMeta({ promptId: 'p' }, 1) } as SessionEvent,
  ]
  expect(others.map((event) => isUncountedAnswer([event]))).toEqual([false, false])
})

test.each(['cancelled', 'interrupted', 'loop'] as const)(
  'what was cut off (%s) had no occasion to be counted',
  (reason) => {
    expect(isUncountedAnswer([answer, end(reason)])).toBe(false)
  },
)

test.each(['completed', 'length', 'refusal'] as const)('what ended by itself (%s) had', (reason) => {
  expect(isUncountedAnswer([answer, end(reason)])).toBe(true)
})
