import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isExactNumber, parseExactly, stringifyExactly, withNearest } from '../src/base/exact-numbers.ts'

const digits = fc.stringMatching(/^(?:0|[1-9]\d{0,40})$/)
const number = fc
  .tuple(
    fc.constantFrom('', '-'),
    digits,
    fc.option(fc.stringMatching(/^\d{1,30}$/)),
    fc.option(fc.integer({ min: -400, max: 400 })),
  )
  .map(
    ([sign, whole, fraction, power]) =>
      `${sign}${whole}${fraction === null ? '' : `.${fraction}`}${power === null ? '' : `e${power}`}`,
  )

/** Numerator and power of ten, without trailing zeros. */
function valueOf(text: string): string {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  let numerator = BigInt(whole + fraction)
  let exponent = Number(power) - fraction.length
  if (numerator === 0n) return '0'
  for (; numerator % 10n === 0n; numerator /= 10n) exponent++
  return `${sign}${numerator}e${exponent}`
}

describe('a JSON number', () => {
  test('is the same number after every hop, however it is written', () => {
    fc.assert(
      fc.property(number, (text) => {
        const hopped: unknown = JSON.parse(JSON.stringify(structuredClone(parseExactly(`{"a":[${text}]}`))))
        const written = stringifyExactly(hopped) ?? ''
        expect(valueOf(/\[(.*)\]/.exec(written)?.[1] ?? '')).toBe(valueOf(text))
      }),
      { numRuns: 1_000 },
    )
  })

  test.each([
    '1234567890123456',
    '9007199254740991',
    '0.1',
    '1e22',
    '1.5e300',
    '-0',
    '1.0',
    '0.30000000000000004',
  ])('%s is a JavaScript number', (text) => expect(parseExactly(text)).toBe(Number(text)))

  test.each(['9007199254740993', '1e400', '1e-400', '0.1234567890123456789', '52.520006599999998'])(
    '%s would be another one, so its digits are kept',
    (text) => {
      expect(isExactNumber(parseExactly(text))).toBe(true)
      expect(withNearest(parseExactly(`[${text}]`))).toEqual([Number(text)])
    },
  )
})

test('digits in a text stay a text, whatever stands round them', () => {
  const part = fc.constantFrom('1234567890123456789', '"', '\\', ':1e400', ',', '{', '\n', 'a')
  const text = fc.array(part).map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.dictionary(text, fc.oneof(text, fc.constant(5))), text, (value, last) => {
      const json = JSON.stringify([value, last])
      expect(parseExactly(json)).toEqual(JSON.parse(json))
      const exact = `[${json},-1234567890123456789,${json}]`
      expect(stringifyExactly(parseExactly(exact))).toBe(exact)
    }),
  )
})

test.each([
  '01234567890123456789',
  '1234567890123456789.',
  '.1234567890123456789',
  '1.2.3456789012345678',
  '--1e400',
  '1e400x',
  '{1234567890123456789:1}',
  '"1e400',
])('%s is no JSON', (text) => expect(() => parseExactly(text)).toThrow(SyntaxError))

test('what only looks like an exact number stays what it is', () => {
  const values = [
    { 'sandlot/number': '5' },
    { 'sandlot/number': '12345678901234567890', more: 1 },
    { 'sandlot/number': 'x12345678901234567890' },
    '{"sandlot/number":"12345678901234567890"}',
    { text: 'a{', 'sandlot/number': '{ "sandlot/number": "12345678901234567890" }' },
  ]
  for (const value of values) expect(JSON.parse(stringifyExactly(value) ?? '')).toEqual(value)
})
