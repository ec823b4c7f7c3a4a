import fc from 'fast-check'
import { expect, test } from 'vitest'
import { makeSandlotEvent, sessionEvent } from '../src/chat/events.ts'
import { readServerFrames } from '../src/chat/frames.ts'
import { agentOverview } from '../src/admin/overview.ts'
import { readReadable } from '../src/base/readable.ts'

const wait = { place: 2, of: 3, why: 'places' as const, limit: 4 }
const waited = makeSandlotEvent({ type: 'line_waited', ...wait }, { promptId: 'p_1', live: true }, 5)
const prompt = (n: number) => ({
  promptId: `p_${n}`,
  person: 'ada',
  model: 'm',
  startedAt: n,
  doing: 'line' as const,
  tools: ['shell'],
  line: wait,
})
const overview = { version: '1', prompts: [1, 2, 3].map(prompt), sandboxes: { running: 1, image: 'i' } }

/** Every path in a value, the deepest first. */
function placesIn(value: unknown, at: readonly (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [[...at]]
  const below = Array.isArray(value)
    ? value.flatMap((item: unknown, place) => placesIn(item, [...at, place]))
    : Object.entries(value).flatMap(([key, item]) => placesIn(item, [...at, key]))
  return [...below, [...at]]
}

/** `value` with another value at this path. */
function damaged(value: unknown, [key, ...deeper]: readonly (string | number)[], by: unknown): unknown {
  if (key === undefined) return by
  const copy: unknown = structuredClone(value)
  if (typeof copy === 'object' && copy !== null)
    Reflect.set(copy, key, damaged(Reflect.get(copy, key), deeper, by))
  return copy
}

test('a limit that JSON has as null takes neither the notice nor the overview', () => {
  const event = damaged(waited, ['_meta', 'sandlot', 'event', 'limit'], null)
  const [read] = readServerFrames({ type: 'ai_chat_event', sessionId: 's_1', event })
  const shown = { type: 'line_waited', place: 2, of: 3, why: 'places' }
  expect(read).toMatchObject({ ok: true, frame: { event: { _meta: { sandlot: { event: shown } } } } })
  const seen = readReadable(agentOverview, damaged(overview, ['prompts', 1, 'line', 'limit'], null))
  expect(seen.ok && seen.data.prompts.map(({ line }) => line?.limit)).toEqual([4, undefined, 4])
  expect(seen.problems).toEqual([expect.stringMatching(/^prompts\.1\.line\.limit: /)])
})

test('whatever one part of an overview is, the prompts beside it are read', () => {
  const inPrompts = placesIn(overview.prompts).filter((place) => place.length > 0)
  fc.assert(
    fc.property(fc.constantFrom(...inPrompts), fc.jsonValue(), (place, by) => {
      const read = readReadable(agentOverview, damaged(overview, ['prompts', ...place], by))
      const others = overview.prompts.filter((_, n) => n !== place[0])
      expect(read.ok && read.data.prompts).toEqual(expect.arrayContaining(others))
    }),
  )
})

test('an event with one unreadable part arrives without it, or not at all; nothing throws', () => {
  const event = { ...waited, addedLater: { by: 'a newer agent' } }
  fc.assert(
    fc.property(fc.constantFrom(...placesIn(waited)), fc.jsonValue(), (place, by) => {
      const read = readReadable(sessionEvent, damaged(event, place, by))
      if (place.at(0) === '_meta' && place.at(2) === 'event')
        expect(read).toMatchObject({
          value: { sessionUpdate: waited.sessionUpdate, addedLater: event.addedLater },
        })
      if (read.ok) expect(sessionEvent.safeParse(read.value).data).toEqual(read.data)
    }),
  )
})

test('what is no event, and what is unreadable everywhere, is none', () => {
  for (const value of [null, 7, 'x', [], {}, { sessionUpdate: 'unheard_of' }])
    expect(readReadable(sessionEvent, value).ok).toBe(false)
  const hostile = { ...overview, sandboxes: 7 }
  expect(readReadable(agentOverview, hostile).ok).toBe(false)
})
