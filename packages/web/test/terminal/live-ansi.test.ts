import type { OutputPiece } from '@sandlot/shared/chat/call'
import { addPiece, EMPTY_OUTPUT } from '@sandlot/shared/transcript/live-output'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { plainText } from '../support/plain-text.ts'
import { type Filled, LiveAnsi } from '../../src/terminal/live-ansi.ts'

const none: Filled = new Map()
const gap = (bytes: number) => `<${bytes} missing>`
const piecesOf = (texts: string[]): OutputPiece[] => {
  let offset = 0
  return texts.map((data) => {
    const from = offset
    offset += data.length
    return { offset: from, end: offset, data }
  })
}

test('property: drawing after each piece ends as drawing once', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 30 }), (texts) => {
      const growing = new LiveAnsi()
      let output = EMPTY_OUTPUT
      for (const piece of piecesOf(texts)) {
        output = addPiece(output, piece)
        growing.render(output.pieces, none, gap)
      }
      expect(growing.render(output.pieces, none, gap)).toEqual(
        new LiveAnsi().render(output.pieces, none, gap),
      )
    }),
  )
})

test('a gap is said, and drawn in its place once its text is there', () => {
  const live = new LiveAnsi()
  const pieces: OutputPiece[] = [
    { offset: 0, end: 4, data: 'one\n' },
    { offset: 8, end: 14, data: 'three\n' },
  ]
  expect(plainText(live.render(pieces, none, gap))).toBe('one\n\n<4 missing>\nthree')
  expect(plainText(live.render(pieces, new Map([[4, 'two\n']]), gap))).toBe('one\ntwo\nthree')
})

test('pieces dropped at the front stay drawn; a replaced tail is drawn anew', () => {
  const live = new LiveAnsi()
  const [a, b, c] = piecesOf(['a\n', 'b\n', 'c\n'])
  if (a === undefined || b === undefined || c === undefined) throw new Error('three pieces')
  live.render([a, b], none, gap)
  expect(plainText(live.render([b, c], none, gap))).toBe('a\nb\nc')
  const whole = { offset: 0, end: 8, data: 'a\nb\nc\nd\n' }
  expect(plainText(live.render([whole], none, gap))).toBe('a\nb\nc\nd')
})

test('of a flood the end is drawn, and how much is missing is said', () => {
  const live = new LiveAnsi()
  const texts = Array.from({ length: 10 }, (_, at) => `${String(at).repeat(63)}\n`.repeat(1_024))
  const drawn = plainText(live.render(piecesOf(texts), none, gap))
  const lines = drawn.split('\n')
  expect(lines.length).toBeLessThan(2 * 1_024)
  expect(lines.at(-1)).toBe('9'.repeat(63))
  const few = new LiveAnsi(10_000)
  expect(plainText(few.render(piecesOf(texts), none, gap))).toMatch(/^<524288 missing>\n8{63}\n/)
})
