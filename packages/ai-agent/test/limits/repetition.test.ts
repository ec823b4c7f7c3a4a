/** Row "loop detection": repetition in text. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RepetitionDetector, withoutRepetition } from '../../src/limits/repetition.ts'

/** True if a watch detects it, fed in pieces of this length. */
function hears(text: string, piece = 7): boolean {
  const watch = new RepetitionDetector()
  for (let at = 0; at < text.length; at += piece) if (watch.add(text.slice(at, at + piece))) return true
  return false
}

describe('repetition', () => {
  test.each([
    ['a sentence', 'I will now read the file. '.repeat(400)],
    ['a paragraph', `${'Let me think about this again, from the beginning. '.repeat(6)}\n\n`.repeat(40)],
    ['behind an answer', `Here is what I found.\n${'Wait, no. Actually, '.repeat(400)}`],
  ])('%s, over and over', (_, text) => {
    expect(hears(text)).toBe(true)
    expect(withoutRepetition(text).length).toBeLessThan(text.length / 4)
    expect(text.startsWith(withoutRepetition(text))).toBe(true)
  })

  test.each([
    ['a line of dashes', '-'.repeat(9_000)],
    ['zeros', '0, '.repeat(5_000)],
    ['a hundred times the same line, as somebody may ask', 'I will not talk in class.\n'.repeat(100)],
    [
      'eight times a paragraph, as somebody may ask',
      Array.from({ length: 18 }, (_, n) => `Point ${n} of the pledge is mine. `)
        .join('')
        .repeat(8),
    ],
    ['a numbered list', Array.from({ length: 900 }, (_, n) => `${n}. the same words each time`).join('\n')],
    ['a table', '| a | b |\n'.repeat(300) + 'and then words'],
  ])('%s is none', (_, text) => {
    expect(hears(text)).toBe(false)
  })

  test('property: however it is cut, a long run of anything with words is heard; its first round stays', () => {
    const unit = fc.stringMatching(/^[a-z]{2,9} [a-z ]{8,60}\. $/)
    fc.assert(
      fc.property(
        unit,
        fc.integer({ min: 1, max: 500 }),
        fc.string({ maxLength: 50 }),
        (round, piece, before) => {
          const text = before + round.repeat(Math.ceil(12_000 / round.length))
          expect(hears(text, piece)).toBe(true)
          expect(hears(text, text.length)).toBe(true)
          expect(withoutRepetition(text).length).toBeLessThanOrEqual(before.length + 2 * round.length)
        },
      ),
    )
  })
})
