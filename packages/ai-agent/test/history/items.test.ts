import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readItems } from '../../src/history/model-messages.ts'

const promptId = fc.constantFrom('p_1', 'p_2')
const turn = fc.constantFrom(1, 2, 3)
const call = fc.constantFrom('a', 'b', 'c')

/** Events of a few prompts, turns and calls, in any order: what the fold must do with them does not depend on sense. */
const event: fc.Arbitrary<SessionEvent> = fc
  .record({ promptId, turn, call, kind: fc.nat(7) })
  .map(({ promptId: id, turn: number, call: toolCallId, kind }): SessionEvent => {
    const _meta = makeMeta({ promptId: id, turn: number }, 1)
    const content = { type: 'text', text: `${id} ${number}` } as const
    switch (kind) {
      case 0:
        return makeSandlotEvent({ type: 'prompt_started', model: `of ${id}` }, { promptId: id }, 1)
      case 1:
        return { sessionUpdate: 'user_message_chunk', messageId: 'm', content, _meta }
      case 2:
        return { sessionUpdate: 'agent_message_chunk', messageId: 'm', content, _meta }
      case 3:
        return {
          sessionUpdate: 'tool_call',
          toolCallId,
          title: 't',
          name: 'n',
          kind: 'other',
          status: 'pending',
          rawInput: {},
          _meta,
        }
      case 4:
        return {
          sessionUpdate: 'tool_call_update',
          toolCallId,
          status: 'completed',
          rawOutput: { forModel: 'x' },
          _meta,
        }
      case 5:
        return makeSandlotEvent({ type: 'turn_ended', callIds: [] }, { promptId: id, turn: number }, 1)
      case 6: {
        const image = { type: 'image', mimeType: 'image/png', data: 'AA==' } as const
        return { sessionUpdate: 'user_message_chunk', messageId: 'm', content: image, _meta }
      }
      default:
        return makeSandlotEvent(
          { type: 'prompt_ended', stopReason: 'end_turn', reason: 'completed' },
          { promptId: id },
          1,
        )
    }
  })

test('a log that is read while it grows gives the same items as one that is read at once', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 40 }), fc.array(fc.boolean()), (events, reads) => {
      const growing: SessionEvent[] = []
      for (const [index, one] of events.entries()) {
        growing.push(one)
        if (reads[index] === true) readItems(growing)
      }
      expect(readItems(growing)).toEqual(readItems([...events]))
    }),
  )
})

test('a log that became another one is read anew', () => {
  const user = (text: string): SessionEvent => ({
    sessionUpdate: 'user_message_chunk',
    messageId: 'm',
    content: { type: 'text', text },
    _meta: makeMeta({ promptId: 'p_1' }, 1),
  })
  const log = [user('one'), user('two')]
  expect(readItems(log)).toHaveLength(2)
  log.length = 1
  expect(readItems(log)).toMatchObject([{ text: 'one' }])
  log[0] = user('other')
  expect(readItems(log)).toMatchObject([{ text: 'other' }])
})

test('the first outcome of a call counts, and live events count for nothing', () => {
  const call: SessionEvent = {
    sessionUpdate: 'tool_call',
    toolCallId: 'a',
    title: 't',
    name: 'n',
    kind: 'other',
    status: 'pending',
    rawInput: {},
    _meta: makeMeta({ promptId: 'p_1', turn: 1 }, 1),
  }
  const outcome = (forModel: string): SessionEvent => ({
    sessionUpdate: 'tool_call_update',
    toolCallId: 'a',
    status: 'completed',
    rawOutput: { forModel },
    _meta: makeMeta({ promptId: 'p_1', turn: 1 }, 1),
  })
  const said: SessionEvent = {
    sessionUpdate: 'agent_message_chunk',
    messageId: 'm',
    content: { type: 'text', text: 'Half a w' },
    _meta: makeMeta({ promptId: 'p_1', turn: 1, live: true, offset: 0 }, 1),
  }
  const [turn, ...others] = readItems([call, said, outcome('one'), outcome('two')])
  expect(others).toEqual([])
  expect(turn).toMatchObject({ turn: { text: '', calls: [{ outcome: { rawOutput: { forModel: 'one' } } }] } })
})
