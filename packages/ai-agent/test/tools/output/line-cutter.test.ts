import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createLineCutter } from '../../../src/tools/output/line-cutter.ts'

const cutAll = (text: string, cuts: readonly number[], maxChars: number) => {
  const cutter = createLineCutter(maxChars)
  const borders = [0, ...cuts.map((cut) => cut % (text.length + 1)).toSorted((a, b) => a - b), text.length]
  const lines = borders.slice(1).flatMap((end, index) => cutter.push(text.slice(borders[index], end)))
  const rest = cutter.end()
  return rest === undefined ? lines : [...lines, rest]
}

test('the same lines wherever the text is cut into pieces', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'é', '\r', '\n'), maxLength: 60 })
  fc.assert(
    fc.property(
      text,
      fc.array(fc.nat(60), { maxLength: 8 }),
      fc.integer({ min: 1, max: 8 }),
      (all, cuts, max) => {
        const parts = all.split('\n')
        if (parts.at(-1) === '') parts.pop()
        const expected = parts.map((part) => {
          const line = part.endsWith('\r') ? part.slice(0, -1) : part
          return { text: line.slice(0, max), chars: line.length, crlf: part.endsWith('\r') }
        })
        expect(cutAll(all, cuts, max)).toEqual(expected)
      },
    ),
  )
})

test('of a line without end only the beginning is kept', () => {
  const cutter = createLineCutter(10)
  for (let i = 0; i < 1000; i++) expect(cutter.push('x'.repeat(1000))).toEqual([])
  expect(cutter.end()).toEqual({ text: 'xxxxxxxxxx', chars: 1_000_000, crlf: false })
})
