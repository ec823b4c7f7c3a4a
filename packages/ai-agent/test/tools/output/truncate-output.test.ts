import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createTerminalCleaner, safeCut, safeStart } from '../../../src/tools/output/ansi-text.ts'
import { createOutputKeeper, truncateToolOutput } from '../../../src/tools/output/truncate-output.ts'

const lines = (text: string): number => text.split('\n').length
const numbered = (count: number): string =>
  Array.from({ length: count }, (_, index) => `line ${index + 1}`).join('\n')

/** Texts of every kind that a terminal may carry. */
const piece = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.constantFrom(
    '\n',
    '\r\n',
    '\r',
    '\x1b[31m',
    '\x1b[0m',
    '\x1b]0;title\x07',
    '\x1b]8;;http://x\x1b\\',
    '\x1b[2K',
    '😀',
    '\0',
    '\t',
  ),
)
const terminalText = fc.array(piece, { maxLength: 60 }).map((parts) => parts.join(''))
/** The same text cut anywhere. */
const cuts = fc.array(fc.nat(2000), { maxLength: 8 })
const cutAt = (text: string, at: readonly number[]): string[] => {
  const places = [...new Set(at.map((place) => place % (text.length + 1)))].toSorted((a, b) => a - b)
  return [0, ...places].map((place, index) => text.slice(place, places[index] ?? text.length))
}

/** One whole text at once. */
function cleanTerminalText(text: string): string {
  const cleaner = createTerminalCleaner()
  return cleaner.push(text) + cleaner.end()
}

describe('truncateToolOutput', () => {
  test('what fits stays as it is', () => {
    const text = `${'x'.repeat(9_999)}\n`
    expect(truncateToolOutput(text)).toEqual({ text, truncated: false })
    expect(truncateToolOutput(numbered(1000)).truncated).toBe(false)
    expect(truncateToolOutput('')).toEqual({ text: '', truncated: false })
  })

  test('a long text keeps a fifth of head and four fifths of tail, in whole lines, with a notice that says how to go on', () => {
    const { text, truncated } = truncateToolOutput(numbered(5000), {
      file: '/workspace/.tool-outputs/ab.txt',
      whole: { bytes: 48_893, lines: 5000 },
    })
    expect(truncated).toBe(true)
    expect(text.length).toBeLessThanOrEqual(10_000)
    expect(lines(text)).toBeLessThanOrEqual(1000)
    const [head = '', tail = ''] = text.split(/\n\[….*…\]\n/)
    expect(head).toMatch(/^line 1\nline 2\n/)
    expect(tail).toMatch(/\nline 5000$/)
    expect(head.length / (head.length + tail.length)).toBeCloseTo(0.2, 1)
    expect(text).toContain('48,893 bytes in 5,000 lines')
    expect(text).toContain('/workspace/.tool-outputs/ab.txt')
    for (const line of [...head.split('\n'), ...tail.split('\n')]) expect(line).toMatch(/^line \d+$/)
  })

  test('one endless line is cut too', () => {
    const { text } = truncateToolOutput('x'.repeat(1_000_000))
    expect(text.length).toBeLessThanOrEqual(10_000)
    expect(text).toMatch(/^x{1500,}\n\[…/)
    expect(text).toMatch(/…\]\nx{7000,}$/)
  })

  test('many short lines are cut by lines', () => {
    const { text } = truncateToolOutput('y\n'.repeat(3000))
    expect(lines(text)).toBeLessThanOrEqual(1001)
    expect(text).toContain('6,000 characters in 3,000 lines')
  })

  test('a head share of 1 keeps only the beginning', () => {
    const { text } = truncateToolOutput(numbered(3000), { headShare: 1 })
    expect(text).toMatch(/^line 1\n[^]*\n\[… The rest of this output is left out[^\n]*…\]$/)
  })

  test('never longer than the input, never above the limits, never half a character, and the same however it came', () => {
    fc.assert(
      fc.property(
        terminalText,
        cuts,
        fc.integer({ min: 1, max: 900 }),
        fc.integer({ min: 1, max: 30 }),
        (text, at, maxChars, maxLines) => {
          const { text: cut, truncated } = truncateToolOutput(text, { maxChars, maxLines })
          expect(cut.length).toBeLessThanOrEqual(Math.max(0, text.length))
          const keeper = createOutputKeeper(maxChars)
          for (const part of cutAt(text, at)) keeper.push(part)
          expect(keeper.finish({ maxLines })).toEqual({ text: cut, truncated })
          if (truncated) {
            expect(cut.length).toBeLessThanOrEqual(maxChars)
            expect(lines(cut.replace(/\n$/, ''))).toBeLessThanOrEqual(maxLines)
            expect(cut.isWellFormed() || !text.isWellFormed()).toBe(true)
          } else {
            expect(cut).toBe(text)
          }
        },
      ),
    )
  })

  test('the keeper does not grow with what goes through it', () => {
    const keeper = createOutputKeeper()
    const block = 'some words and then some more of them\n'.repeat(2000)
    for (let index = 0; index < 400; index++) keeper.push(block)
    const { text } = keeper.finish()
    expect(text.length).toBeLessThanOrEqual(10_000)
    expect(text).toContain(`${(block.length * 400).toLocaleString('en-US')} characters in 800,000 lines`)
  })
})

describe('terminal text', () => {
  test.each([
    ['\x1b[31mred\x1b[0m', 'red'],
    ['\x1b]0;title\x07text', 'text'],
    ['\x1b]8;;http://a.test\x1b\\link\x1b]8;;\x1b\\', 'link'],
    ['10%\r50%\r100%\n', '100%\n'],
    ['done\r\nnext\r\n', 'done\nnext\n'],
    ['working\r\x1b[2Kdone\n', 'done\n'],
    ['a\0b\x07c', 'abc'],
    ['tab\there', 'tab\there'],
  ])('%j is %j', (raw, plain) => {
    expect(cleanTerminalText(raw)).toBe(plain)
  })

  test('is the same however it came', () => {
    fc.assert(
      fc.property(terminalText, cuts, (text, at) => {
        const cleaner = createTerminalCleaner()
        const parts = cutAt(text, at).map((part) => cleaner.push(part))
        expect(parts.join('') + cleaner.end()).toBe(cleanTerminalText(text))
      }),
    )
  })

  test('a flood of returns leaves what was printed before it, however it is cut', () => {
    for (const flood of ['\r'.repeat(300_000), '\r\x1b[2K'.repeat(100_000)]) {
      const cleaner = createTerminalCleaner()
      let out = ''
      for (let at = 0; at < flood.length; at += 20_000)
        out += cleaner.push((at === 0 ? 'before' : '') + flood.slice(at, at + 20_000))
      expect(out + cleaner.push('\nafter') + cleaner.end()).toBe('before\nafter')
    }
  })

  test('a progress line that never ends needs no memory and says what it showed last', () => {
    const cleaner = createTerminalCleaner()
    let out = ''
    for (let index = 0; index <= 100_000; index++) out += cleaner.push(`\r${'.'.repeat(50)} ${index}`)
    out += cleaner.end()
    expect(out).toBe(`${'.'.repeat(50)} 100000`)
  })

  test('a cut is inside neither a character nor an escape sequence', () => {
    const sequences = [
      '\x1b[38;5;196m',
      '\x1b]8;;http://a.test/b\x1b\\',
      '\x1b]0;t\x07',
      '😀',
      '\x1bM',
      '\x9b31m',
    ]
    for (const sequence of sequences) {
      const text = `ab${sequence}cd`
      for (let cut = 0; cut <= text.length; cut++) {
        const inside = cut > 2 && cut < 2 + sequence.length
        expect([safeCut(text, cut), safeStart(text, cut)], JSON.stringify([sequence, cut])).toEqual(
          inside ? [2, 2 + sequence.length] : [cut, cut],
        )
      }
    }
  })
})
