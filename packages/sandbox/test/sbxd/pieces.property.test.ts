import fc from 'fast-check'
import { expect, test } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import { createPieces } from '../../src/sbxd/pieces.ts'

test('the same bytes come out in the same order, whenever some are taken', () => {
  const piece = fc.uint8Array({ minLength: 1, maxLength: 3_000 })
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.constant('take' as const)), { maxLength: 40 }), (steps) => {
      const pieces = createPieces()
      const taken: Buffer[] = []
      for (const step of steps) {
        if (step === 'take') taken.push(pieces.shift() ?? Buffer.alloc(0))
        else pieces.push(Buffer.from(step))
      }
      for (let next = pieces.shift(); next; next = pieces.shift()) taken.push(next)
      const said = steps.filter((step) => step !== 'take')
      expect(Buffer.concat(taken).equals(Buffer.concat(said))).toBe(true)
      expect(pieces.count).toBe(0)
    }),
    { numRuns: extent(100, 2_000) },
  )
})

test('a window full of single bytes is a few buffers', () => {
  const pieces = createPieces()
  for (let at = 0; at < 256 * 1024; at += 1) pieces.push(Buffer.from([at % 256]))
  expect(pieces.count).toBeLessThan(100)
})
