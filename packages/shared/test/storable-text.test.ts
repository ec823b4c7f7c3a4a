import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { WITHOUT_NUL, parseStorable, storableJson, storableText } from '../src/base/storable-text.ts'

const anyText = fc.string({
  unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
})
const nulText = fc.string({ unit: fc.constantFrom('a', '\0', '\ud800', '\udc00', '\u{1f600}') })

test('text is well-formed and has no U+0000, and what is well stays the same object', () => {
  fc.assert(
    fc.property(fc.oneof(anyText, nulText), (text) => {
      const cleaned = storableText(text)
      expect(cleaned).not.toContain('\0')
      expect(cleaned.isWellFormed()).toBe(true)
      expect(storableText(cleaned)).toBe(cleaned)
    }),
  )
  fc.assert(
    fc.property(fc.jsonValue(), fc.dictionary(nulText, fc.array(nulText)), (value, spoilt) => {
      const cleaned = storableJson([value, spoilt, Number.NaN])
      expect(JSON.stringify(cleaned)).not.toContain(String.raw`\u0000`)
      expect(storableJson(cleaned)).toBe(cleaned)
    }),
  )
})

test('names keep their order, and nothing becomes a prototype', () => {
  const cleaned = storableJson(JSON.parse(String.raw`{"b":1,"a\u0000":"x\u0000","__proto__":{"c":"\u0000"}}`))
  expect(JSON.stringify(cleaned)).toBe('{"b":1,"a":"x","__proto__":{"c":""}}')
})

test('what is nested too deeply to be walked through is refused', () => {
  const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
  const shape = z.unknown().refine((value) => JSON.stringify(value).length > 0)
  expect(parseStorable(shape, nested(200)).success).toBe(true)
  for (const levels of [201, 200_000])
    expect(parseStorable(shape, nested(levels)).error?.issues[0]?.message).toContain('deeper than 200')
})

test('a shape has to fit what was sent, and what is left of it', () => {
  const command = z.object({ command: z.string().regex(WITHOUT_NUL) })
  expect(parseStorable(command, { command: 'a\0b' }).success).toBe(false)
  const name = z.object({ name: z.string().min(1) })
  expect(parseStorable(name, { name: 'a\0b' }).data).toEqual({ name: 'ab' })
  expect(parseStorable(name, { name: '\0' }).success).toBe(false)
})
