import fc from 'fast-check'
import { expect, test } from 'vitest'
import { newlinesInBytes, newlinesInText } from '../../../src/tools/output/count-newlines.ts'

test('property: every byte 10 is counted once, at any place in memory, and as often in the decoded text', () => {
  const bytes = fc.array(fc.oneof(fc.constant(10), fc.constantFrom(9, 11, 0x8a, 0xe2, 0x82), fc.nat(255)))
  fc.assert(
    fc.property(bytes, fc.nat(8), fc.nat(40), (all, from, cut) => {
      const part = Uint8Array.from(all).subarray(from)
      const counted = part.filter((byte) => byte === 10).length
      expect(newlinesInBytes(part)).toBe(counted)
      const decoder = new TextDecoder()
      const pieces = [part.subarray(0, cut), part.subarray(cut)].map((one) =>
        decoder.decode(one, { stream: true }),
      )
      expect(newlinesInText([...pieces, decoder.decode()].join(''))).toBe(counted)
    }),
    { numRuns: 500 },
  )
})
