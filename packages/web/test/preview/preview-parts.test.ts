import { describe, expect, test } from 'vitest'
import { filesNamed } from '../../src/preview/named-files.ts'
import { ExactNumber, jsonRows, parseJson } from '../../src/preview/json-tree.ts'
import { kindOf } from '../../src/preview/kinds.ts'
import { readNotebook } from '../../src/preview/notebook.ts'
import { patchRows } from '../../src/preview/patch.ts'
import { tooManyPixels } from '../../src/preview/picture-size.ts'
import { decodeFile } from '../../src/preview/decode-file.ts'
import { arrange, MOST_COLUMNS, MOST_ROWS, parseTable } from '../../src/preview/table.ts'
import { textRows } from '../../src/preview/text-lines.ts'

test.each([
  ['text/plain; charset=utf-8', 'out/data.CSV', 'table'],
  ['text/plain; charset=utf-8', 'Dockerfile', 'code'],
  ['text/plain; charset=utf-8', 'README.md', 'markdown'],
  ['text/plain; charset=utf-8', 'notes', 'text'],
  ['text/plain; charset=utf-8', 'plot.png', 'text'],
  ['application/octet-stream', 'data.csv', 'bytes'],
  ['image/svg+xml', 'logo.svg', 'image'],
  ['image/heic', 'photo.heic', 'bytes'],
  ['application/pdf', 'page.html', 'pdf'],
  ['text/plain', 'constructor', 'text'],
])('%s called %s is shown as %s', (type, path, kind) => {
  expect(kindOf(type, path)).toBe(kind)
})

describe('a table', () => {
  const table = (text: string, options = { tabs: false, whole: true }) => parseTable(text, options)
  const shown = (text: string, how: Parameters<typeof arrange>[1]) => {
    const read = table(text)
    return read === null ? [] : Array.from(arrange(read, how), (at) => read.rows[at]?.[0])
  }

  test('is told apart by what cuts its lines, and keeps what is quoted', () => {
    expect(table('a;b\n1;"x;y"\n2;"two\nlines"\n')).toMatchObject({
      columns: ['a', 'b'],
      numeric: [true, false],
      rows: [
        ['1', 'x;y'],
        ['2', 'two\nlines'],
      ],
      cut: false,
    })
    expect(table('name\nAda\nBob\n')?.rows).toEqual([['Ada'], ['Bob']])
  })

  test.each([
    ['id,note\n1,"ok\n2,b\n3,c\n', 'row 1 is not closed', ['"ok', 'b', 'c']],
    ['id,note\n1,a\n2,"b" c\n3,d\n', 'row 2 is in the wrong place', ['a', '"b" c', 'd']],
  ])('keeps the rows behind a wrong quotation mark: %j', (text, note, cells) => {
    const read = table(text)
    expect(read?.rows.map((row) => row[1])).toEqual(cells)
    expect(read?.notes).toEqual([expect.stringContaining(note)])
  })

  test('of which only the beginning is read may end within quotation marks', () => {
    expect(table('id,note\n1,a\n2,"b\n', { tabs: false, whole: false })).toMatchObject({
      rows: [['1', 'a']],
      notes: [],
    })
    const swallowed = table(`id,note\n1,"a\n${'2,b\n'.repeat(50_000)}`, { tabs: false, whole: false })
    expect(swallowed?.rows.length).toBeGreaterThan(40_000)
  })

  test('says that long cells are cut', () => {
    expect(table(`a,b\n1,${'x'.repeat(3_000)}\n`)?.notes.join()).toContain('2,000 characters')
  })

  test('is none where no column is found', () => {
    expect(
      table('This is a letter, and it has\nlines of many words, as letters do, and no columns.'),
    ).toBeNull()
    expect(table('x'.repeat(100_000))).toBeNull()
  })

  test('has names for columns without one, and for those of longer rows', () => {
    expect(table('a,,c\n1,2,3\n4,5,6\n7,8,9,10\n')?.columns).toEqual(['a', 'Column 2', 'c', 'Column 4'])
  })

  test('is bounded in rows and columns, and says so; the row that the end cuts is left off', () => {
    const long = table(`a,b\n${'1,2\n'.repeat(MOST_ROWS + 5)}`)
    expect([long?.rows.length, long?.cut]).toEqual([MOST_ROWS, true])
    const wide = table(`${'x,'.repeat(MOST_COLUMNS + 9)}x\n`)
    expect([wide?.columns.length, wide?.cut]).toEqual([MOST_COLUMNS, true])
    expect(table('a,b\n1,2\n3,4', { tabs: false, whole: false })?.rows).toEqual([['1', '2']])
  })

  test('is sorted by numbers where a column has numbers, and what is none comes last either way', () => {
    const text = 'n,b\n10,x\n"1,200",x\n9,x\n,x\n-3,x\n8,x\n7,x\n6,x\n5,x\n4,x\n'
    expect(shown(text, { sort: { column: 0, down: false }, filter: '' })).toEqual([
      '-3',
      '4',
      '5',
      '6',
      '7',
      '8',
      '9',
      '10',
      '1,200',
      '',
    ])
    expect(shown(text, { sort: { column: 0, down: true }, filter: '' }).at(-1)).toBe('')
    expect(shown('n,b\nb10,1\nB9,1\na,1\n', { sort: { column: 0, down: false }, filter: '' })).toEqual([
      'a',
      'B9',
      'b10',
    ])
  })

  test('is filtered by any cell, and keeps its order', () => {
    expect(shown('n,b\n1,Red\n2,blue\n3,dark red\n', { sort: null, filter: ' RED ' })).toEqual(['1', '3'])
  })

  test('knows numbers with signs of money, parts of a hundred and thousands', () => {
    const text = 'n,b\n€ 3,1\n"1,234.5",1\n12 %,1\n1e3,1\n-1,1\n'
    expect(table(text)?.numeric).toEqual([true, true])
    expect(shown(text, { sort: { column: 0, down: false }, filter: '' })).toEqual([
      '-1',
      '€ 3',
      '12 %',
      '1e3',
      '1,234.5',
    ])
  })
})

describe('a tree of JSON', () => {
  test('lists what is open; small members near the root are from the start', () => {
    const value = parseJson('{"a": 1, "list": [{"deep": {"er": 1}}], "big": []}', false)
    const ids = (toggled: string[] = []) =>
      jsonRows(value, new Set(toggled)).map(({ id, open }) => `${id}${open ? '+' : ''}`)
    expect(ids()).toEqual(['+', '/a', '/list+', '/list/0', '/big+'])
    expect(ids(['/list'])).toEqual(['+', '/a', '/list', '/big+'])
    expect(ids(['/list/0'])).toContain('/list/0/deep')
  })

  test('keeps the digits that JavaScript would round', () => {
    expect(parseJson('[12345678901234567890, 1234567890123456, 0.1]', false)).toEqual([
      new ExactNumber('12345678901234567890'),
      1234567890123456,
      0.1,
    ])
  })

  test('has a line each of JSON lines, and lists no more than can be', () => {
    expect(parseJson('{"a":1}\n\n{"a":2}\n', true)).toEqual([{ a: 1 }, { a: 2 }])
    const rows = jsonRows(
      Array.from({ length: 30_000 }, (_, at) => at),
      new Set(),
    )
    expect([rows.length, rows[0]?.left]).toEqual([10_001, 20_000])
  })

  test('nests as deep as a file can', () => {
    let value: unknown = 1
    for (let depth = 0; depth < 50_000; depth++) value = [value]
    expect(jsonRows(value, new Set()).length).toBe(3)
  })
})

describe('a notebook', () => {
  const outputs = (...list: unknown[]) => {
    const { cells } = readNotebook({
      nbformat: 4,
      cells: [{ cell_type: 'code', source: 'x', outputs: list }],
    })
    return cells[0]?.type === 'code' ? cells[0].outputs : []
  }
  const data = (bundle: object) => ({ output_type: 'display_data', data: bundle })

  test('shows the richest form of an output that runs nothing', () => {
    expect(
      outputs(
        data({ 'image/png': 'QUJD\n', 'text/plain': 'x' }),
        data({ 'text/html': ['<b>', '1</b>'], 'text/plain': '1' }),
        data({ 'application/javascript': 'alert(1)' }),
        data({ 'image/png': '"onerror="', 'text/plain': 'not base64' }),
        { output_type: 'stream', text: ['a\n', 'b'] },
        { output_type: 'error', ename: 'E', evalue: 'v' },
        { output_type: 'widget' },
      ),
    ).toEqual([
      { type: 'image', src: 'data:image/png;base64,QUJD' },
      { type: 'html', text: '<b>1</b>' },
      { type: 'unknown', what: 'application/javascript' },
      { type: 'ansi', text: 'not base64', failed: false },
      { type: 'ansi', text: 'a\nb', failed: false },
      { type: 'ansi', text: 'E: v', failed: true },
      { type: 'unknown', what: 'an output of an unknown kind' },
    ])
  })

  test('says what needs scripts, and shows the rest', () => {
    const chart = '<div id="a"></div><script>Plotly.newPlot("a", [])</script>'
    const left = { type: 'unknown', what: expect.stringContaining('needs scripts') }
    expect(outputs(data({ 'text/html': chart }))).toEqual([left])
    const table = '<table><tr><td>1</td></tr></table><script>x()</script>'
    expect(outputs(data({ 'text/html': table }))).toEqual([{ type: 'html', text: table }, left])
  })

  test('brings its pasted pictures along', () => {
    const source = ['![a b](attachment:a%20b.png) ', '![c](attachment:c.png)']
    const attachments = { 'a b.png': { 'image/png': 'QUJD' }, 'd.html': { 'text/html': 'x' } }
    const { cells } = readNotebook({ nbformat: 4, cells: [{ cell_type: 'markdown', source, attachments }] })
    expect(cells).toEqual([
      {
        type: 'markdown',
        text: '![a b](attachment/a%20b.png) ![c](attachment/c.png)',
        pictures: new Map([['attachment/a%20b.png', 'data:image/png;base64,QUJD']]),
      },
    ])
  })

  test.each([[{}], [{ worksheets: [] }], [[]], [null], [{ nbformat: 4, cells: 'x' }]])(
    '%j is none',
    (json) => {
      expect(() => readNotebook(json)).toThrow('isn’t a version 4 notebook')
    },
  )
})

test('a patch is files, places and lines; a line of code that looks like a header is code', () => {
  const text =
    'diff --git a/x.sql b/x.sql\nindex 1..2 100644\n--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@ here\n a\n--- old\n+++ new\ndiff --git a/gone b/gone\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n'
  expect(patchRows(text)).toEqual([
    { type: 'file', path: 'x.sql', added: 1, removed: 1 },
    { type: 'place', text: 'Line 1 · here' },
    { type: 'same', text: 'a', oldNo: 1, newNo: 1 },
    { type: 'del', text: '-- old', oldNo: 2 },
    { type: 'add', text: '++ new', newNo: 2 },
    { type: 'file', path: 'gone', added: 0, removed: 1 },
    { type: 'place', text: 'Line 0' },
    { type: 'del', text: 'x', oldNo: 1 },
  ])
  expect(patchRows('Dear Ada,\n+ 1\n- 2\n')).toEqual([])
})

test('a text is rows of lines, and a very long line is many', () => {
  expect(textRows('a\r\nb\n\nc\n')).toEqual([
    { text: 'a', no: 1 },
    { text: 'b', no: 2 },
    { text: '', no: 3 },
    { text: 'c', no: 4 },
  ])
  const rows = textRows('x'.repeat(5000))
  expect(rows.map(({ text, no }) => [text.length, no])).toEqual([
    [2000, 1],
    [2000, undefined],
    [1000, undefined],
  ])
})

test('a picture that would unpack to gigabytes is told by its head', () => {
  const head = (width: number, height: number) => {
    const bytes = Buffer.alloc(33)
    bytes.write('\u0089PNG\r\n\u001A\n', 'latin1')
    bytes.writeUInt32BE(width, 16)
    bytes.writeUInt32BE(height, 20)
    return bytes
  }
  expect(tooManyPixels(head(4000, 3000))).toBe(false)
  expect(tooManyPixels(head(60_000, 60_000))).toBe(true)
})

test('an answer names files to look at by links and by whole paths in code, each once', () => {
  expect(
    filesNamed(
      'See [the table](out/a.csv), `/workspace/out/a.csv`, `/workspace/main.py`, `b.csv` and ![plot](plot.png), [plot](plot.png).\n\n```\n[x](code.csv)\n```\n[out](https://example.org/x.pdf)',
    ),
  ).toEqual(['out/a.csv'])
})

test('a patch from Windows is one as well; elsewhere a CR is a part of the line', () => {
  const text = 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n'
  expect(patchRows(text.replaceAll('\n', '\r\n'))).toEqual(patchRows(text))
  expect(patchRows(text.replace('+b', '+b\r'))).toContainEqual({ type: 'add', text: 'b\r', newNo: 1 })
})

test.each([
  ['UTF-16', Buffer.from('\uFEFFname;stück', 'utf16le'), 'name;stück', /UTF-16/],
  ['Windows-1252', Buffer.from('größe', 'latin1'), 'größe', /Windows-1252, which is a guess/],
  ['UTF-8', Buffer.from('\uFEFFgröße'), 'größe', undefined],
  ['bytes', Buffer.from('a\0\u0001'), 'a\0\u0001', /no text/],
])('%s is read as text, and what is special is said', (_, bytes, text, note) => {
  const read = decodeFile(bytes, false)
  expect(read.text).toBe(text)
  if (note === undefined) expect(read.note).toBeUndefined()
  else expect(read.note).toMatch(note)
})
