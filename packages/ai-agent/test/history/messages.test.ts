import { type SessionEvent, makeSandlotEvent, metaOf } from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { modelMessages } from '../../src/history/model-messages.ts'
import { textTokens } from '../../src/model/tokens.ts'

/** One turn whose calls gave these texts, as it is stored. */
function turnWith(texts: readonly string[]): SessionEvent[] {
  const _meta = makeMeta({ promptId: 'p', turn: 1 }, 1)
  const calls = texts.map((_, n): SessionEvent => ({
    sessionUpdate: 'tool_call',
    toolCallId: `c${n}`,
    title: 'Look',
    name: 'look',
    kind: 'read',
    status: 'pending',
    rawInput: {},
    _meta,
  }))
  const outcomes = texts.map((forModel, n): SessionEvent => ({
    sessionUpdate: 'tool_call_update',
    toolCallId: `c${n}`,
    status: 'completed',
    rawOutput: { forModel },
    _meta,
  }))
  const started = makeSandlotEvent({ type: 'prompt_started' }, { promptId: 'p' }, 1)
  return [started, ...calls, ...outcomes].map((event, index) => {
    const sandlot = { ...metaOf(event), seq: index + 1 }
    return { ...event, _meta: { sandlot } }
  })
}

function results(texts: readonly string[], contextWindow?: number): string[] {
  const reader = contextWindow === undefined ? {} : { contextWindow }
  return modelMessages(turnWith(texts), 'system', reader).flatMap((message) =>
    message.role === 'tool' ? [message.content] : [],
  )
}

test('no single result takes more than a quarter of the window, those of a turn no more than a half', () => {
  const window = 2_000
  const text = fc
    .tuple(fc.constantFrom('word ', 'x', '漢字', '\n', '😀'), fc.integer({ min: 0, max: 3_000 }))
    .map(([piece, times]) => piece.repeat(times))
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 5 }), (texts) => {
      const sent = results(texts, window)
      const tokens = sent.map(textTokens)
      expect(Math.max(...tokens)).toBeLessThanOrEqual(window / 4)
      expect(tokens.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(window / 2)
      // Conversations that fit are left alone.
      const most = window / Math.max(4, 2 * texts.length)
      for (const [place, one] of texts.entries()) if (textTokens(one) <= most) expect(sent[place]).toBe(one)
    }),
    { numRuns: 40 },
  )
})

test('what is too long for the window keeps its end, and fills its share', () => {
  const [sent = ''] = results([`${'word '.repeat(20_000)}and so it went.`], 8_000)
  expect(sent.endsWith('and so it went.')).toBe(true)
  expect(textTokens(sent)).toBeGreaterThan(1_900)
})

test('a window that nobody knows cuts nothing', () => {
  const long = 'word '.repeat(50_000)
  // Not compared as texts: a difference of 250 kB would be shown.
  expect(results([long]).map((sent) => sent === long)).toEqual([true])
})

test('what a provider put on a call goes back to its own model alone', () => {
  const log = turnWith(['one'])
  const signed = log.map((event): SessionEvent => {
    if (event.sessionUpdate !== 'tool_call') return event
    const sandlot = { ...event._meta.sandlot, forProvider: { call: { extra_content: 'signature' } } }
    return { ...event, _meta: { sandlot } }
  })
  const started = makeSandlotEvent({ type: 'prompt_started', model: 'first' }, { promptId: 'p' }, 1)
  const sentTo = (model: string): string =>
    JSON.stringify(modelMessages([started, ...signed.slice(1)], 'system', { model }))
  expect(sentTo('first')).toContain('signature')
  expect(sentTo('second')).not.toContain('signature')
})
