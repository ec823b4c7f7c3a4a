import { stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ARGUMENTS_MEMBERS, ArgumentsBuffer } from '../../src/model/arguments.ts'
import { parseJson } from '../../src/model/json.ts'
import { readText } from './read-stream.ts'

const whole = fc
  .dictionary(fc.constantFrom('a', 'b'), fc.constantFrom(1, 'x', '}', ' ', null, []), { maxKeys: 2 })
  .map((object) => JSON.stringify(object))
const piece = fc.oneof(
  whole,
  whole.chain((text) => fc.nat(text.length).map((cut) => text.slice(0, cut))),
  whole.chain((text) => fc.nat(text.length).map((cut) => text.slice(cut))),
  whole.map((text) => ` ${text}\n`),
  fc.constantFrom(' ', '\n', ' ', '{}', '{', '}', '"', '""', '[]', '1', 'null', ', '),
)

/** The definition, without regard to its cost. */
function isAgain(buffer: ArgumentsBuffer, again: string): boolean {
  if (!buffer.complete || !/^\s*\{[^]*\}\s*$/.test(again)) return false
  const mine = parseJson(buffer.text)
  const other = parseJson(again)
  return mine.ok && other.ok && JSON.stringify(mine.value) === JSON.stringify(other.value)
}

test('whatever has come, and however often it is asked: what is there once more is told from what is new', () => {
  let again = 0
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), fc.array(piece, { maxLength: 4 }), (pieces, others) => {
      const buffer = new ArgumentsBuffer()
      for (const next of pieces) {
        for (const asked of [...others, next, buffer.text]) {
          expect(buffer.repeats(asked)).toBe(isAgain(buffer, asked))
          if (isAgain(buffer, asked)) again++
        }
        buffer.push(next)
      }
    }),
    { numRuns: 1_000 },
  )
  expect(again, 'both answers are drawn').toBeGreaterThan(100)
})

test.each(ARGUMENTS_MEMBERS)(
  'digits of a call whose %s are an object in the event are kept',
  async (name) => {
    const event = `{"created":1234567890123456789,"choices":[{"index":0,"finish_reason":"tool_calls","delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","${name}":{"id":1234567890123456789}}}]}}]}`
    const unfinished = event.replace('"tool_calls","delta"', 'null,"delta"')
    for (const text of [event, unfinished, event.replace('}}]}}]}', '},"nan":NaN}]}}]}')]) {
      const { answer } = await readText(`data: ${text}\n\ndata: [DONE]\n\n`)
      expect(answer.calls.map(({ args }) => stringifyExactly(args))).toEqual(['{"id":1234567890123456789}'])
    }
  },
)
