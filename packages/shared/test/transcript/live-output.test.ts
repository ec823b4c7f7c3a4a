import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addPiece, EMPTY_OUTPUT, gapsOf } from '../../src/transcript/live-output.ts'

const bytes = 'abcdefghijklmnopqrstuvwxyz0123456789'
const range = fc
  .tuple(fc.nat(bytes.length), fc.nat(bytes.length))
  .map(([a, b]) => ({ from: Math.min(a, b), to: Math.max(a, b) }))
const cut = ({ from, to }: { from: number; to: number }) => ({
  offset: from,
  end: to,
  data: bytes.slice(from, to),
})

describe('live output', () => {
  test('pieces and gaps always cover 0 to the end exactly, with the right text', () => {
    fc.assert(
      fc.property(fc.array(range, { maxLength: 20 }), (ranges) => {
        const output = ranges.map(cut).reduce(addPiece, EMPTY_OUTPUT)
        const parts = [
          ...output.pieces.map((piece) => ({ from: piece.offset, to: piece.end, data: piece.data })),
          ...gapsOf(output).map((gap) => ({ ...gap, data: bytes.slice(gap.from, gap.to) })),
        ].toSorted((a, b) => a.from - b.from)
        expect(parts.map((part) => part.data).join('')).toBe(bytes.slice(0, output.end))
        expect(output.end).toBe(Math.max(0, ...ranges.filter((r) => r.to > r.from).map((r) => r.to)))
      }),
    )
  })

  test('keeps a bounded tail and says what is missing', () => {
    let output = EMPTY_OUTPUT
    for (let i = 0; i < 100; i++) {
      output = addPiece(output, { offset: i * 10_000, end: (i + 1) * 10_000, data: 'x'.repeat(10_000) })
    }
    expect(output.end).toBe(1_000_000)
    expect(output.pieces.length).toBeLessThan(30)
    expect(gapsOf(output)).toEqual([{ from: 0, to: output.pieces[0]?.offset }])
  })
})
