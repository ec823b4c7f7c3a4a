/** Live state for a late joiner. */
import { type SessionEvent, makeSandlotEvent, textOf } from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { expect, test } from 'vitest'
import { InFlight } from '../../src/session/in-flight.ts'

function chunk(text: string, offset: number, messageId = 'm'): SessionEvent {
  const _meta = makeMeta({ promptId: 'p', turn: 1, live: true, offset }, 1)
  return { sessionUpdate: 'agent_message_chunk', messageId, content: { type: 'text', text }, _meta }
}

function texts(flight: InFlight): string[] {
  return flight
    .snapshot()
    .flatMap((event) => (event.sessionUpdate === 'agent_message_chunk' ? [textOf(event)] : []))
}

test('pieces join where they overlap; one behind a hole is left out', () => {
  const flight = new InFlight()
  flight.show(chunk('Hello', 0))
  flight.show(chunk('lo, wor', 3))
  flight.show(chunk('far away', 40))
  flight.show(chunk('ld', 10))
  expect(texts(flight)).toEqual(['Hello, world'])
})

test('what was withdrawn, settled or ended is not in flight any more', () => {
  const flight = new InFlight()
  for (const id of ['withdrawn', 'settled', 'rest']) flight.show(chunk(id, 0, id))
  const withdrawn = { type: 'message_withdrawn', messageId: 'withdrawn', why: 'error' } as const
  flight.settle(makeSandlotEvent(withdrawn, { promptId: 'p', turn: 1 }, 1))
  expect(texts(flight)).toEqual(['settled', 'rest'])
  const { _meta: _live, ...settled } = chunk('settled', 0, 'settled')
  flight.settle({ ...settled, _meta: makeMeta({ promptId: 'p', turn: 1 }, 1) })
  expect(texts(flight)).toEqual(['rest'])
  const ended = { type: 'prompt_ended', stopReason: 'end_turn', reason: 'completed' } as const
  flight.settle(makeSandlotEvent(ended, { promptId: 'p' }, 1))
  expect(flight.snapshot()).toEqual([])
})

test('a wait for the model is there until anything comes of it', () => {
  const flight = new InFlight()
  const event = { type: 'model_waited', why: 'rate_limit', waitMs: 6_000, retry: 1, of: 3 } as const
  const wait = makeSandlotEvent(event, { promptId: 'p', turn: 1, live: true }, 1)
  flight.show(wait)
  expect(flight.snapshot()).toEqual([wait])
  flight.show(chunk('Hello', 0))
  expect(flight.snapshot()).toHaveLength(1)
  flight.show(wait)
  const changed = { type: 'model_changed', model: 'other', why: 'rate_limit' } as const
  flight.settle(makeSandlotEvent(changed, { promptId: 'p', turn: 1 }, 1))
  expect(flight.snapshot()).not.toContainEqual(wait)
})

test('a call that is being written is there as it stands, until its message is whole', () => {
  const flight = new InFlight()
  const draft = (chars: number) =>
    makeSandlotEvent(
      { type: 'call_drafted', messageId: 'm', place: 0, name: 'write_file', chars, text: '{' },
      { promptId: 'p', turn: 1, live: true },
      1,
    )
  flight.show(draft(1))
  flight.show(draft(7))
  expect(flight.snapshot()).toEqual([draft(7)])
  const withdrawn = { type: 'message_withdrawn', messageId: 'm', why: 'error' } as const
  flight.settle(makeSandlotEvent(withdrawn, { promptId: 'p', turn: 1 }, 1))
  expect(flight.snapshot()).toEqual([])
})
