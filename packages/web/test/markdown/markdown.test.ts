import fc from 'fast-check'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, test } from 'vitest'
import { highlight } from '../../src/markdown/highlight.ts'
import { safeHref } from '../../src/markdown/links.ts'
import { Markdown } from '../../src/markdown/markdown.tsx'
import { workspacePath } from '../../src/markdown/workspace-path.ts'

const html = (text: string, streaming = false) =>
  renderToStaticMarkup(createElement(Markdown, { text, streaming }))

describe('what an answer names of the workspace', () => {
  test.each([
    ['plot.png', 'plot.png'],
    ['./out/a b.csv', 'out/a b.csv'],
    ['out/a%20b.csv', 'out/a b.csv'],
    ['100%.csv', '100%.csv'],
    ['/workspace/out/../plot.png', 'plot.png'],
    ['src/main.ts#L12', 'src/main.ts'],
    ['src/main.ts:12:3', 'src/main.ts'],
    ['../secret', undefined],
    ['out/%2e%2e/%2e%2e/secret', undefined],
    ['/workspace/../etc/passwd', undefined],
    ['/workspaces/x', undefined],
    ['/etc/passwd', undefined],
    ['//evil.example/x.png', undefined],
    ['%2f%2fevil.example/x.png', undefined],
    ['\\\\evil.example\\x.png', undefined],
    ['https://example.org/x.png', undefined],
    ['javascript:alert(1)', undefined],
    ['#top', undefined],
    ['', undefined],
  ])('%s is %s', (address, path) => {
    expect(workspacePath(address)).toBe(path)
  })

  test('a link and an image lead to the files API and nowhere else, and so does a whole path in code', () => {
    const address = (path: string) => `/api/files/content?path=${encodeURIComponent(path)}`
    expect(html('[report](out/report.pdf)')).toContain(`href="${address('out/report.pdf')}"`)
    expect(html('![plot](plot.png)')).toContain(`src="${address('plot.png')}"`)
    expect(html('`/workspace/out/a.csv`')).toContain(`href="${address('out/a.csv')}"`)
    for (const text of ['`a.csv`', '`/workspace/*.csv`', '`/workspace/`', '`cat /workspace/a.csv`'])
      expect(html(text)).not.toContain('<a ')
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', '.', '/', '%2e', '%2f', ':', '\\', '#', '?') }),
        (text) => {
          const path = workspacePath(text)
          if (path === undefined) return
          expect(path.split('/')).not.toContain('..')
          expect(path).not.toMatch(/^\//)
        },
      ),
    )
  })
})

describe('T03 markdown from a model', () => {
  test('headings, lists, tables, code', () => {
    const out = html(
      '# Title\n\n- one\n- two\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```js\nlet x = 1\n```\n\nand `inline`',
    )
    expect(out).toContain('<h1 dir="auto">Title</h1>')
    expect(out).toContain('<td dir="auto">1</td>')
    expect(out).toContain('<code dir="ltr" class="inline">inline</code>')
    expect(out).toContain('tok-keyword">let</span>')
    expect(out).toContain('Copy code')
  })

  test('unfinished constructs are closed while they stream', () => {
    expect(html('**bold and', true)).toContain('<strong>bold and</strong>')
    expect(html('```py\nprint(', true)).toContain('tok-name">print</span>')
  })

  /** Answers as models write them. */
  test.each([
    ['5~7 units and 100~200 times', '5~7 units and 100~200 times'],
    ['first (~$1.50) and second (~$10)', 'first (~$1.50) and second (~$10)'],
    ['~~gone~~ and ~kept~', '<del>gone</del> and ~kept~'],
    ['**中文（括号）**后面', '<strong>中文（括号）</strong>后面'],
    ['**「強調」**です', '<strong>「強調」</strong>です'],
    ['これは**「強調」**', 'これは<strong>「強調」</strong>'],
    ['**“bold”**text', '<strong>“bold”</strong>text'],
    ['**주의:**다음', '<strong>주의:</strong>다음'],
    ['*（注）*です and **a**b', '<em>（注）</em>です and <strong>a</strong>b'],
    ['*(*foo*)*', '<em>(<em>foo</em>)</em>'],
    ['2 * 3 * 4, a*b', '2 * 3 * 4, a*b'],
    ['it costs $5/month, or 50$/year', 'it costs $5/month, or 50$/year'],
  ])('%s', (text, inner) => {
    expect(html(text)).toContain(`<p dir="auto">${inner}</p>`)
  })

  test('indented code is as it is written', () => {
    expect(html("    grep -E '^$|^#$' file")).toContain('grep -E &#x27;^$|^#$&#x27; file')
  })

  test.each([
    ['script', '<script>alert(1)</script>'],
    ['handler', '<img src=x onerror="alert(1)">'],
    ['frame', '<iframe src="https://evil.example"></iframe>'],
    ['style', '<style>body{display:none}</style>'],
    ['form', '<form action="https://evil.example"><input name=a></form>'],
    ['inline in a paragraph', 'text <b onclick="x()">bold</b> text'],
    ['svg', '<svg><script>alert(1)</script></svg>'],
  ])('raw HTML is text: %s', (_name, text) => {
    const out = html(text)
    expect(out).not.toMatch(/<(script|img|iframe|style|form|b|svg|input)[\s>]/)
    expect(out).toContain('&lt;')
  })

  test('no image is loaded', () => {
    const remote = html('![plan](https://evil.example/a.png?secret=1)')
    expect(remote).not.toContain('<img')
    expect(remote).toContain('Image not loaded: plan')
    expect(html('![x](/api/sessions)')).not.toContain('<img')
    expect(html('![x](//evil.example/a.png)')).not.toContain('<img')
  })

  test.each([
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc/passwd',
    '/api/sign-out',
  ])('no link to %s', (address) => {
    expect(html(`[click](${address})`)).not.toContain('<a ')
    expect(html(`[click](${address})`)).toContain('click')
  })

  test('a link to the web opens apart and tells nobody where it came from', () => {
    const out = html('[docs](https://example.org/a?b=c)')
    expect(out).toContain('href="https://example.org/a?b=c"')
    expect(out).toContain('rel="noopener noreferrer nofollow"')
  })
})

test('safeHref', () => {
  expect(safeHref('https://example.org')).toBe('https://example.org/')
  expect(safeHref('mailto:a@example.org')).toBe('mailto:a@example.org')
  expect(safeHref('example.org')).toBeUndefined()
  expect(safeHref(undefined)).toBeUndefined()
})

test('property: highlighting never changes the code', () => {
  const languages = [
    'ts',
    'python',
    'bash',
    'sql',
    'yaml',
    'json',
    'html',
    'css',
    'diff',
    'rust',
    'unknown',
    '',
  ]
  const code = fc.array(
    fc.oneof(
      fc.constantFrom(
        '"',
        "'",
        '`',
        '#',
        '//',
        '/*',
        '*/',
        '\n',
        '<a',
        '=',
        'return ',
        'def f(',
        '0x1F',
        '${',
        '"""',
        '+x',
        '-',
      ),
      fc.string({ maxLength: 5 }),
    ),
    { maxLength: 30 },
  )
  fc.assert(
    fc.property(fc.constantFrom(...languages), code, (language, parts) => {
      const text = parts.join('')
      expect(
        highlight(text, language)
          .map((token) => token.text)
          .join(''),
      ).toBe(text)
    }),
    { numRuns: 500 },
  )
})

test('highlighting finds what it should', () => {
  const kinds = (text: string, language: string) =>
    highlight(text, language).flatMap((token) =>
      token.kind === undefined ? [] : [`${token.kind}:${token.text}`],
    )
  expect(kinds('const a = "x" // y', 'ts')).toEqual(['keyword:const', 'string:"x"', 'comment:// y'])
  expect(kinds('for f in $HOME; do echo "a b"; done # c', 'sh')).toEqual([
    'keyword:for',
    'keyword:in',
    'name:$HOME',
    'keyword:do',
    'string:"a b"',
    'keyword:done',
    'comment:# c',
  ])
  expect(kinds('SELECT 1 from t', 'sql')).toEqual(['keyword:SELECT', 'number:1', 'keyword:from'])
  expect(kinds('+a\n-b\n c', 'diff')).toEqual(['add:+a', 'del:-b'])
})
