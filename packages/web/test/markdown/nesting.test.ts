import fc from 'fast-check'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { Markdown } from '../../src/markdown/markdown.tsx'
import { isNestedTooDeep, limitDepth } from '../../src/markdown/nesting.ts'

const html = (text: string) => renderToStaticMarkup(createElement(Markdown, { text, streaming: false }))
const lines = (count: number, line: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => line(n)).join('\n')

test.each([
  ['quotes', `${'>'.repeat(2000)} x`],
  ['quotes with spaces', `${'> '.repeat(2000)}x`],
  ['bullets on one line', `${'- '.repeat(2000)}x`],
  ['numbers on one line', `${'1. '.repeat(2000)}x`],
  ['quotes and bullets', `${'> * '.repeat(1000)}x`],
  ['lists by indentation', lines(300, (n) => `${' '.repeat(n * 2)}- a`)],
  ['lists by tabs', lines(300, (n) => `${'\t'.repeat(n)}+ a`)],
  ['lists in a quote', lines(300, (n) => `> ${' '.repeat(n * 2)}- a`)],
  ['with CR LF', `a\r\n\r\n${'>'.repeat(2000)} x\r\n`],
])('%s beyond the limit are shown as written', (_, text) => {
  expect(isNestedTooDeep(text)).toBe(true)
  const shown = html(text)
  expect(shown).toContain('data-testid="markdown-source"')
  expect(shown).not.toMatch(/<(blockquote|li)/)
})

test.each([
  ['a long list', lines(5000, (n) => `${n}. a`)],
  ['a list of ten levels, many times', lines(2000, (n) => `${'  '.repeat(n % 10)}- a`)],
  ['a long quote', lines(5000, () => '> > a')],
  ['code', `\`\`\`\n${lines(200, (n) => `${'    '.repeat(n)}if (a) {`)}\n\`\`\``],
  ['a rule', '- - - - - - - -'],
  ['stars', '*'.repeat(5000)],
])('%s is laid out', (_, text) => {
  expect(isNestedTooDeep(text)).toBe(false)
})

test('an answer is laid out or shown as written, however its lines begin', () => {
  const marker = fc.constantFrom('>', '> ', '- ', '* ', '+ ', '1. ', '12) ', '  ', '\t')
  const line = fc.array(marker, { maxLength: 60 }).map((markers) => `${markers.join('')}x`)
  fc.assert(
    fc.property(fc.array(line, { maxLength: 6 }), (all) => {
      const shown = html(all.join('\n'))
      expect(shown.match(/<(blockquote|ul|ol)/g)?.length ?? 0).toBeLessThanOrEqual(32 * all.length)
    }),
    { numRuns: 40 },
  )
})

test('a tree that is too deep is refused, and a wide one is not', () => {
  const nested = (depth: number): Parameters<ReturnType<typeof limitDepth>>[0] =>
    depth === 0 ? { type: 'text' } : { type: 'element', children: [nested(depth - 1)] }
  expect(() => limitDepth()(nested(90))).not.toThrow()
  expect(() => limitDepth()(nested(120))).toThrow(/nested deeper/)
  expect(() =>
    limitDepth()({ type: 'root', children: Array.from({ length: 10_000 }, () => nested(5)) }),
  ).not.toThrow()
  expect(() => html('*a **b '.repeat(300) + 'x' + '** *'.repeat(300))).not.toThrow()
  expect(() => html('*a '.repeat(300) + 'x*'.repeat(300))).toThrow(/nested deeper/)
})
