/** Whatever is sent, and whenever a turn ends: the same frames arrive, in their order. */
import { setImmediate as turn } from 'node:timers/promises'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { type ServerFrame, readServerFrames } from '@sandlot/shared/chat/frames'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FrameWriter } from '../../src/socket/frame-writer.ts'

const stream = { cork: () => undefined, uncork: () => undefined }

const eventOf = (text: string): SessionEvent => ({
  sessionUpdate: 'agent_message_chunk',
  messageId: 'm_1',
  content: { type: 'text', text },
  _meta: makeMeta({ live: true, offset: 0 }, 1),
})
const event = (sessionId: string, text: string): ServerFrame => ({
  type: 'ai_chat_event',
  sessionId,
  event: eventOf(text),
})

const frame = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.constantFrom('s_1', 's_2'), fc.string({ maxLength: 5 }))
      .map(([id, text]) => event(id, text)),
  },
  { weight: 1, arbitrary: fc.constant<ServerFrame>({ type: 'ai_chat_caught_up', sessionId: 's_1', seq: 3 }) },
)

test('frames arrive as they were sent', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(frame, { maxLength: 6 }), { maxLength: 5 }), async (turns) => {
      const messages: string[] = []
      const writer = new FrameWriter(stream, (text) => messages.push(text))
      for (const frames of turns) {
        for (const each of frames) writer.send(each)
        await turn()
      }
      const arrived = messages.flatMap((text) => readServerFrames(JSON.parse(text)))
      expect(arrived).toEqual(turns.flat().map((each) => ({ ok: true, frame: each })))
    }),
  )
})

test('events of one session in one turn are one message; what is long does not wait', async () => {
  const messages: string[] = []
  const writer = new FrameWriter(stream, (text) => messages.push(text))
  for (let i = 0; i < 100; i++) writer.send(event('s_1', 'x'))
  expect(messages).toEqual([])
  await turn()
  expect(messages).toHaveLength(1)
  writer.send(event('s_1', 'x'.repeat(300_000)))
  expect(messages).toHaveLength(2)
})
