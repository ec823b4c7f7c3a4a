/** Row "budgets": which answers count as ones of which nobody knows what they cost. */
import { type TokenUsage, makeMeta } from '@sandlot/shared/event-meta'
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/events'
import { type EndReason, STOP_REASON_OF } from '@sandlot/shared/reasons'
import { expect, test } from 'vitest'
import { isUncountedAnswer } from '../../src/limits/uncounted.ts'

const meta = { promptId: 'p', turn: 1 }
const answer: SessionEvent = {
  sessionUpdate: 'agent_message_chunk',
  messageId: 'm',
  content: { type: 'text', text: 'So.' },
  _meta: makeMeta({ ...meta, request: { upTo: 1, frame: 'f', body: 'b', from: 0, digests: [] } }, 1),
}
const count = (usage?: TokenUsage): SessionEvent => ({
  sessionUpdate: 'usage_update',
  used: 1,
  size: 1,
  _meta: makeMeta({ ...meta, ...(usage === undefined ? {} : { usage }) }, 1),
})
const end = (reason: EndReason): SessionEvent =>
  makeSandlotEvent({ type: 'prompt_ended', stopReason: STOP_REASON_OF[reason], reason }, meta, 1)

test('an answer without a count is one, and an estimate of how full the window is counts nothing', () => {
  expect(isUncountedAnswer([answer])).toBe(true)
  expect(isUncountedAnswer([answer, count()])).toBe(true)
  expect(isUncountedAnswer([answer, count({ input: 1, output: 1 })])).toBe(false)
  expect(isUncountedAnswer([end('completed')])).toBe(false)
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
