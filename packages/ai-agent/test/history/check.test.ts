/** Bug 1: before every request the history is looked at, and mended where it is not in order. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { historyProblems, repairHistory } from '../../src/history/check.ts'
import { plainHistory } from '../../src/history/plain.ts'
import type { ModelMessage } from '../../src/model/model.ts'
import { requestBody } from '../../src/model/wires/chat/body.ts'
import { DEFAULT_PROFILE } from '../../src/model/profiles.ts'
import type { RecordedBody } from '../support/fake-provider.ts'
import { wireProblems } from '../scripts/wire-problems.ts'

const id = fc.constantFrom('', 'a', 'b', 'c')
const call = fc.record({
  id,
  name: fc.constantFrom('', 'look'),
  args: fc.constantFrom({}, { x: 1 }, 'no json'),
})
const content = fc.constantFrom('', 'x', ' ')
const message: fc.Arbitrary<ModelMessage> = fc.oneof(
  fc.record({ role: fc.constant('system' as const), content: fc.constant('s') }),
  fc.record({ role: fc.constant('user' as const), content: fc.constant('u') }),
  fc.record({ role: fc.constant('assistant' as const), content, calls: fc.array(call, { maxLength: 3 }) }),
  fc.record({ role: fc.constant('tool' as const), callId: id, content: fc.constant('t') }),
)
const anyMessages = fc.array(message, { maxLength: 12 })

/** The bytes of these messages as sent. */
function sent(messages: readonly ModelMessage[]): RecordedBody {
  const tools = [{ name: 'look', description: 'x', parameters: { type: 'object' } }]
  const options = {
    model: 'm',
    streaming: true,
    profile: DEFAULT_PROFILE,
    refused: new Set<string>(),
  } as const
  return requestBody({ messages, tools }, options) as unknown as RecordedBody
}

describe('the history check', () => {
  test('property: any messages can be mended, and what was in order stays as it was', () => {
    fc.assert(
      fc.property(anyMessages, (messages) => {
        const mended = repairHistory(messages)
        expect(historyProblems(mended)).toEqual([])
        expect(wireProblems(sent(mended))).toEqual([])
        if (historyProblems(messages).length === 0) expect(mended).toEqual(messages)
      }),
      { numRuns: 500 },
    )
  })

  test('property: it says what a strict provider would say of the bytes', () => {
    fc.assert(
      fc.property(anyMessages, (messages) => {
        const strict = wireProblems(sent(messages))
        if (strict.length > 0) expect(historyProblems(messages)).not.toEqual([])
      }),
      { numRuns: 500 },
    )
  })

  test('property: the plainest form is in order where the ordinary one is', () => {
    fc.assert(
      fc.property(anyMessages, (messages) => {
        const plain = plainHistory(repairHistory(messages))
        expect(historyProblems(plain)).toEqual([])
        const pairs = plain.map((one, at) => `${plain[at - 1]?.role ?? ''} ${one.role}`)
        expect(pairs).not.toContain('user user')
      }),
    )
  })

  test.each<[string, ModelMessage[], RegExp]>([
    ['a call without its result', [{ role: 'user', content: 'u' }, answer('a')], /the call a has no result/],
    ['a result of no call', [{ role: 'user', content: 'u' }, result('x')], /a result of x/],
    [
      'results in another order',
      [{ role: 'user', content: 'u' }, answer('a', 'b'), result('b'), result('a')],
      /a result of b, but the next is that of a/,
    ],
    [
      'a message between call and result',
      [{ role: 'user', content: 'u' }, answer('a'), { role: 'user', content: 'x' }, result('a')],
      /the call a has no result before/,
    ],
    [
      'an id twice',
      [{ role: 'user', content: 'u' }, answer('a'), result('a'), answer('a'), result('a')],
      /the id a belongs to two calls/,
    ],
  ])('%s is named', (_, messages, words) => {
    expect(
      historyProblems(messages)
        .map(({ problem }) => problem)
        .join(),
    ).toMatch(words)
  })
})

function answer(...ids: string[]): ModelMessage {
  return { role: 'assistant', content: '', calls: ids.map((one) => ({ id: one, name: 'look', args: {} })) }
}
function result(callId: string): ModelMessage {
  return { role: 'tool', callId, content: 't' }
}
