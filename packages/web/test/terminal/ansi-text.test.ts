import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AnsiText, renderAnsi } from '../../src/terminal/ansi-text.ts'
import { plainText } from '../support/plain-text.ts'
import { inkOn } from '../../src/terminal/palette.ts'

const ESC = '\u001b'
const plain = (text: string) => plainText(renderAnsi(text))
const spans = (text: string) => renderAnsi(text).blocks.flatMap((block) => block.lines.flat())

describe('what is obeyed', () => {
  test('the 16 colours, weight, and their end', () => {
    expect(spans(`a${ESC}[1;31mb${ESC}[22;39mc${ESC}[94md${ESC}[me`)).toEqual([
      { text: 'a', style: null },
      { text: 'b', style: { bold: true, fg: 1 } },
      { text: 'c', style: null },
      { text: 'd', style: { fg: 12 } },
      { text: 'e', style: null },
    ])
  })

  test('256 colours and true colour, in both notations', () => {
    expect(spans(`${ESC}[38;5;208ma`)[0]?.style).toEqual({ fg: '#ff8700' })
    expect(spans(`${ESC}[48;5;244ma`)[0]?.style).toEqual({ bg: '#808080' })
    expect(spans(`${ESC}[38;2;255;215;0;1ma`)[0]?.style).toEqual({ fg: '#ffd700', bold: true })
    expect(spans(`${ESC}[38:2::255:215:0ma`)[0]?.style).toEqual({ fg: '#ffd700' })
    expect(spans(`${ESC}[38;5;9ma`)[0]?.style).toEqual({ fg: 9 })
  })

  test('a carriage return begins the line again, and a line keeps its end before a newline', () => {
    expect(plain('10%\r50%\r100%\ndone\r\nnext')).toBe('100%\ndone\nnext')
    expect(plain('kept\r')).toBe('kept')
    expect(plain('long text\rx')).toBe('x')
  })

  test('a backspace takes one character, also one outside the basic plane', () => {
    expect(plain('|\b/\b-')).toBe('-')
    expect(plain('a😀\bb')).toBe('ab')
    expect(plain('\b\bx')).toBe('x')
  })
})

describe('what does nothing', () => {
  const hostile: [string, string][] = [
    ['window title', `${ESC}]0;owned\u0007`],
    ['window title, ended by ST', `${ESC}]2;owned${ESC}\\`],
    ['clipboard', `${ESC}]52;c;b3duZWQ=\u0007`],
    [
      'a link: its text stays, its target is gone',
      `${ESC}]8;;https://evil.example${ESC}\\${ESC}]8;;${ESC}\\`,
    ],
    ['DCS', `${ESC}Pq#0;2;0;0;0#0!100~${ESC}\\`],
    ['APC', `${ESC}_Gf=24;AAAA${ESC}\\`],
    ['PM and SOS', `${ESC}^x${ESC}\\${ESC}Xx${ESC}\\`],
    ['clear and home', `${ESC}[2J${ESC}[H${ESC}[3J`],
    ['cursor motion', `${ESC}[5A${ESC}[10;10f${ESC}[1;1H`],
    ['erase in line', `${ESC}[2K${ESC}[1K`],
    ['alternate screen, mouse, bracketed paste', `${ESC}[?1049h${ESC}[?1003h${ESC}[?2004h`],
    ['reports', `${ESC}[6n${ESC}[c${ESC}[>c${ESC}[?u`],
    ['conceal and blink', `${ESC}[8m${ESC}[5m`],
    ['charset, keypad, reset', `${ESC}(0${ESC}=${ESC}c`],
    ['SGR-like with a private marker', `${ESC}[>4;2m${ESC}[?4m`],
    ['C1: CSI, OSC, DCS', '\u009b2J\u009d0;owned\u009c\u0090x\u009c'],
    ['bell, null, vertical tab, form feed, delete', '\u0007\u0000\u000b\u000c\u007f'],
  ]
  test.each(hostile)('%s', (_name, sequence) => {
    expect(spans(`before${sequence}after`)).toEqual([{ text: 'beforeafter', style: null }])
  })

  test('a string that nobody ends does not swallow the next line', () => {
    expect(plain(`one${ESC}]0;never ended\ntwo`)).toBe('one\ntwo')
    expect(plain(`one${ESC}Pnever ended\ntwo`)).toBe('one\ntwo')
  })

  test('a sequence in a sequence is a new one', () => {
    expect(spans(`${ESC}[3${ESC}[31mred`)).toEqual([{ text: 'red', style: { fg: 1 } }])
    expect(spans(`${ESC}]0;x${ESC}[31mred`)).toEqual([{ text: 'red', style: { fg: 1 } }])
  })

  test('endless parameters are not kept and not obeyed', () => {
    expect(spans(`${ESC}[${'1;'.repeat(10_000)}31mx`)).toEqual([{ text: 'x', style: null }])
  })

  test('text that would turn its own order round is marked', () => {
    expect(plain('a\u202eb\u2066c')).toBe('a\ufffdb\ufffdc')
  })
})

const piece = fc.oneof(
  fc.constantFrom(
    ESC,
    `${ESC}[`,
    `${ESC}]`,
    `${ESC}P`,
    `${ESC}\\`,
    '\r',
    '\n',
    '\b',
    '\u0007',
    '\u009b',
    '\u009d',
    '\u009c',
    ';',
    ':',
    '31',
    'm',
    '38;5;',
    'K',
  ),
  fc.constantFrom(
    `${ESC}[31m`,
    `${ESC}[0m`,
    `${ESC}[1;42m`,
    `${ESC}[2J`,
    `${ESC}]0;t\u0007`,
    'text ',
    '😀',
    '\t',
  ),
  fc.string({ maxLength: 6 }),
)
const output = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''))

test('property: how the text is cut into chunks makes no difference', () => {
  fc.assert(
    fc.property(output, fc.array(fc.nat(20), { maxLength: 80 }), (text, sizes) => {
      const chunked = new AnsiText()
      let at = 0
      for (const size of sizes) {
        chunked.feed(text.slice(at, at + size))
        at += size
      }
      chunked.feed(text.slice(at))
      expect(chunked.render()).toEqual(renderAnsi(text))
    }),
    { numRuns: 500 },
  )
})

test('property: no control character ever reaches the page, and later text always does', () => {
  fc.assert(
    fc.property(output, (text) => {
      const shown = plain(`${text}\nthe end`)
      // oxlint-disable-next-line no-control-regex
      expect(shown).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/)
      expect(shown.endsWith('the end')).toBe(true)
    }),
    { numRuns: 500 },
  )
})

test('old lines are dropped and counted; full blocks keep their identity', () => {
  const ansi = new AnsiText(100)
  const lines = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => `${from + i}\n`).join('')
  ansi.feed(lines(0, 120))
  const before = ansi.render()
  ansi.feed(lines(120, 1000))
  const after = ansi.render()
  const shown = plainText(after).split('\n')
  expect(after.dropped + shown.length).toBe(1000)
  expect(shown.length).toBeGreaterThanOrEqual(100)
  expect(shown.length).toBeLessThan(220)
  ansi.feed('x')
  expect(ansi.render().blocks[0]).toBe(after.blocks[0])
  expect(before.blocks[1]).toBe(before.blocks[1])
})

test('property: on any ground the ink has a contrast of 4.5', () => {
  const luminance = (rgb: string) => {
    const channel = (at: number) => {
      const value = Number.parseInt(rgb.slice(at, at + 2), 16) / 255
      return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
    }
    return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
  }
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffffff }), (color) => {
      const ground = `#${color.toString(16).padStart(6, '0')}`
      const [dark, light] = [luminance(ground), luminance(inkOn(ground))].toSorted((a, b) => a - b)
      expect(((light ?? 0) + 0.05) / ((dark ?? 0) + 0.05)).toBeGreaterThanOrEqual(4.5)
    }),
  )
})
