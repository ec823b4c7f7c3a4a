import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import type { SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { answerOf } from '../../src/chat/answer.ts'
import { findSubmitted } from '../../src/chat/unattended.ts'

const said = (messageId: string, text: string, promptId = 'p1'): SessionEvent => ({
  sessionUpdate: 'agent_message_chunk',
  messageId,
  content: { type: 'text', text },
  _meta: makeMeta({ promptId }, 1),
})
const happened = (event: SandlotEvent, promptId = 'p1'): SessionEvent =>
  makeSandlotEvent(event, { promptId }, 1)
const ended = happened({ type: 'prompt_ended', stopReason: 'end_turn', reason: 'completed' })

test('there is no answer before the end', () => {
  expect(answerOf('s', 'p1', [said('m1', 'so far')])).toBeUndefined()
  expect(answerOf('s', 'p1', [])).toBeUndefined()
})

test('withdrawn text is left out, and other prompts add nothing', () => {
  const log = [
    said('m0', 'of another prompt', 'p0'),
    said('m1', 'half an ans'),
    happened({ type: 'message_withdrawn', messageId: 'm1', why: 'cut off' }),
    said('m2', 'a whole answer'),
    ended,
  ]
  expect(answerOf('s', 'p1', log)).toMatchObject({
    promptId: 'p1',
    text: 'a whole answer',
    stopReason: 'end_turn',
    toolResults: [],
  })
})

test('the end speaks where the model did not', () => {
  const end = happened({
    type: 'prompt_ended',
    stopReason: 'end_turn',
    reason: 'error',
    text: 'The model said 401.',
  })
  expect(answerOf('s', 'p1', [end])).toMatchObject({ text: 'The model said 401.', reason: 'error' })
})

test('an error is reported beside the text of the model', () => {
  const end = happened({
    type: 'prompt_ended',
    stopReason: 'end_turn',
    reason: 'error',
    text: 'The model said 401.',
  })
  expect(answerOf('s', 'p1', [said('m1', 'First I look.'), end])).toMatchObject({
    text: 'First I look.',
    stopReason: 'end_turn',
    reason: 'error',
    message: 'The model said 401.',
  })
  expect(answerOf('s', 'p1', [said('m1', 'Done.'), ended])?.message).toBeUndefined()
})

test('a message that was withdrawn before a prompt took it ends as withdrawn', () => {
  const withdrawn = happened({ type: 'message_unqueued', messageId: 'm1', why: 'withdrawn' })
  expect(answerOf('s', 'p1', [withdrawn])).toMatchObject({
    text: 'The message was taken back before the agent read it.',
    stopReason: 'cancelled',
    reason: 'cancelled',
  })
  // A prompt that took another message continues.
  const sent = happened({ type: 'message_unqueued', messageId: 'm1', why: 'sent' })
  expect(answerOf('s', 'p1', [sent])).toBeUndefined()
})

test('a submission is found by its request id and its person, with all of its prompt', () => {
  const title: SessionEvent = {
    sessionUpdate: 'session_info_update',
    title: 'x',
    _meta: makeMeta({ promptId: 'p1' }, 1),
  }
  const log = [
    happened({ type: 'prompt_started', requestId: 'r0' }, 'p0'),
    title,
    happened({ type: 'prompt_started', requestId: 'r1' }),
    ended,
  ]
  expect(findSubmitted(log, 'r1', 'u_ann', 'u_ann')).toEqual({ first: title, end: ended })
  expect(findSubmitted(log, 'r2', 'u_ann', 'u_ann')).toBeUndefined()
  expect(findSubmitted(log, 'r1', 'u_bob', 'u_ann')).toBeUndefined()
  for (const id of ['u_ann', 'u_bob']) {
    const author = { id, name: id }
    const theirs = makeSandlotEvent(
      { type: 'prompt_started', requestId: 'r1' },
      { promptId: 'p1', author },
      1,
    )
    expect(findSubmitted([theirs], 'r1', id, 'u_ann')?.first).toBe(theirs)
    expect(findSubmitted([theirs], 'r1', id === 'u_ann' ? 'u_bob' : 'u_ann', 'u_ann')).toBeUndefined()
  }
})
