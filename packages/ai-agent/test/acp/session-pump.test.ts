import type { SessionEvent } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { batches } from '../../src/acp/session-pump.ts'

const event = (chars: number, seq: number): SessionEvent => ({
  sessionUpdate: 'agent_message_chunk',
  messageId: `m_${seq}`,
  content: { type: 'text', text: 'x'.repeat(chars) },
  _meta: { sandlot: { v: 1, at: 1, seq } },
})

test('every event is in one batch, in order, and no batch is longer than a message may be', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.nat(50), fc.nat(200_000)), { maxLength: 500 }), (sizes) => {
      const events = sizes.map((chars, index) => event(chars, index + 1))
      const made = [...batches(events)]
      expect(made.flat()).toEqual(events)
      for (const batch of made) {
        expect(batch.length).toBeGreaterThan(0)
        expect(batch.length).toBeLessThanOrEqual(200)
        if (batch.length > 1) expect(JSON.stringify(batch).length).toBeLessThan(256 * 1024)
      }
    }),
    { numRuns: 50 },
  )
})
