/** Parts of a live text, as the agent writes it and otherwise. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { plainLiveText, sessionEvent } from '../src/chat/events.ts'

const odd = fc.constantFrom<unknown>(undefined, null, -1, 1.5, '', 'x', true, {}, [])
const or = (usual: unknown): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 12, arbitrary: fc.constant(usual) }, odd)
const later = fc.oneof({ weight: 12, arbitrary: fc.constant({}) }, fc.constant({ later: 1 }))
const sandlot = fc
  .record(
    {
      v: or(1),
      at: or(1),
      promptId: or('p_1'),
      turn: or(1),
      live: or(true),
      offset: or(0),
      seq: odd,
      event: odd,
    },
    { requiredKeys: ['v', 'at', 'live'] },
  )
  .chain((meta) => later.map((more) => ({ ...meta, ...more })))
const event = fc
  .record({
    sessionUpdate: fc.constantFrom('agent_message_chunk', 'agent_thought_chunk', 'user_message_chunk'),
    messageId: or('m_1'),
    content: later.map((more) => ({ type: 'text', text: 'x', ...more })),
    _meta: fc.tuple(sandlot, later).map(([meta, more]) => ({ sandlot: meta, ...more })),
  })
  .chain((whole) => later.map((more) => ({ ...whole, ...more })))

test('what counts as a plain live text is an event of the whole schema, unchanged', () => {
  let plain = 0
  fc.assert(
    fc.property(event, (value) => {
      if (!plainLiveText.safeParse(value).success) return
      plain++
      expect(sessionEvent.parse(value)).toEqual(value)
    }),
    { numRuns: 2_000 },
  )
  expect(plain).toBeGreaterThan(0)
})
