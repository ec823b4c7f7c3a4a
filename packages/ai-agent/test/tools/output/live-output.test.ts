import { setTimeout as sleep } from 'node:timers/promises'
import type { OutputPiece } from '@sandlot/shared/chat/call'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createLiveOutput } from '../../../src/tools/output/live-output.ts'

async function collect(pieces: AsyncGenerator<OutputPiece, void>): Promise<OutputPiece[]> {
  const all: OutputPiece[] = []
  for await (const piece of pieces) all.push(piece)
  return all
}

describe('live output', () => {
  test('pieces follow one another and give the text of the bytes, however the bytes were cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'grapheme' }),
        fc.array(fc.nat(50), { maxLength: 6 }),
        async (text, cuts) => {
          const bytes = Buffer.from(text)
          const live = createLiveOutput()
          const shown = collect(live.pieces())
          let offset = 0
          for (const cut of [...cuts.toSorted((a, b) => a - b), bytes.length]) {
            const end = Math.min(Math.max(cut, offset), bytes.length)
            live.push(offset, bytes.subarray(offset, end))
            offset = end
            await Promise.resolve()
          }
          live.end()
          const pieces = await shown
          expect(pieces.map((piece) => piece.data).join('')).toBe(bytes.toString())
          let at = 0
          for (const piece of pieces) {
            expect(piece.offset).toBe(at)
            expect(Buffer.byteLength(piece.data)).toBe(piece.end - piece.offset)
            at = piece.end
          }
          expect(at).toBe(bytes.length)
        },
      ),
      { numRuns: 50 },
    )
  })

  test('half a character is held back until its rest comes', async () => {
    const euro = Buffer.from('€')
    const live = createLiveOutput()
    const shown = collect(live.pieces())
    live.push(0, euro.subarray(0, 1))
    await sleep(80)
    live.push(1, euro.subarray(1))
    live.end()
    expect(await shown).toEqual([{ offset: 0, end: 3, data: '€' }])
  })

  test('a fast command skips ahead: few pieces, none large, and the last bytes are in the last piece', async () => {
    const live = createLiveOutput()
    const shown = collect(live.pieces())
    const block = Buffer.from('0123456789abcdef€\n'.repeat(3000))
    const began = performance.now()
    let offset = 0
    for (let round = 0; round < 300; round++) {
      live.push(offset, block)
      offset += block.length
      await sleep(1)
    }
    live.end()
    const pieces = await shown
    const seconds = (performance.now() - began) / 1000
    expect(pieces.length).toBeLessThanOrEqual(Math.ceil(seconds * 20) + 1)
    expect(pieces.length).toBeGreaterThan(1)
    for (const piece of pieces) {
      expect(piece.end - piece.offset).toBeLessThanOrEqual(64 * 1024)
      expect(piece.data).not.toContain('\uFFFD')
    }
    expect(pieces.some((piece, index) => index > 0 && piece.offset > (pieces[index - 1]?.end ?? 0))).toBe(
      true,
    )
    expect(pieces.at(-1)?.end).toBe(offset)
  })

  test('bytes that are no UTF-8 are shown as such and counted right', async () => {
    const live = createLiveOutput()
    const shown = collect(live.pieces())
    live.push(0, Buffer.from([0xff, 0xfe, 0x41, 0xe2, 0x82]))
    live.end()
    const pieces = await shown
    expect(pieces.map((piece) => piece.data).join('')).toBe('\uFFFD\uFFFDA\uFFFD')
    expect(pieces.at(-1)?.end).toBe(5)
  })
})
