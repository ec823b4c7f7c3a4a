import { beforeEach, describe, expect, test } from 'vitest'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { ToolOutcome } from '../../src/tools/tool.ts'
import { TestBatch } from '../calls/test-batch.ts'
import { hasRipgrep } from './local-sandboxes.ts'
import { emptySandbox, useSandboxes } from './use-sandboxes.ts'

const local = useSandboxes()
let batch: TestBatch
let sandbox: Sandbox
beforeEach(async () => {
  batch = new TestBatch({ sandboxes: () => local.sandboxes })
  sandbox = await emptySandbox(local)
})

const put = (path: string, content: string | Uint8Array) => sandbox.files.write(path, Buffer.from(content))
const content = async (path: string) => Buffer.from(await sandbox.files.read(path)).toString()
const text = (outcome: ToolOutcome): string => outcome.forModel
const reason = (outcome: ToolOutcome): string =>
  outcome.status === 'failed' ? outcome.reason : outcome.status

describe('paths', () => {
  const outside = [
    '../../etc/shadow',
    '/etc/passwd',
    '~root/x',
    'a/../../b',
    '/workspace/../etc/passwd',
    '..\\..\\x',
    'C:\\x',
    '/workspacex/y',
    '~',
    '~/x',
  ]
  const impossible = ['a\0b', 'x/'.repeat(2600), 'y'.repeat(300), 'bad\ud800']

  test.each(['read_file', 'write_file', 'edit_file', 'list_directory', 'glob', 'search_text'])(
    '%s stays in the workspace',
    async (name) => {
      const more: Record<string, Record<string, string>> = {
        write_file: { content: '' },
        edit_file: { old_text: 'a', new_text: 'b' },
        glob: { pattern: '*' },
        search_text: { pattern: 'x' },
      }
      for (const path of outside)
        expect([path, reason(await batch.call(name, { path, ...more[name] }))]).toEqual([
          path,
          'path_outside',
        ])
      for (const path of impossible) {
        expect([path, reason(await batch.call(name, { path, ...more[name] }))]).toEqual([
          path,
          'invalid_arguments',
        ])
      }
    },
  )

  test.each(['dir/a.txt', './dir/a.txt', '/workspace/dir/a.txt', 'dir//a.txt', 'dir/../dir/./a.txt'])(
    '%s is inside',
    async (path) => {
      await put('dir/a.txt', 'here\n')
      expect(text(await batch.call('read_file', { path }))).toBe('1\there')
    },
  )

  test('what a command has made can be read, whatever it means elsewhere', async () => {
    await batch.call('run_shell_command', { command: String.raw`echo 1 > 'a\b.txt'; echo 2 > '~$c.docx'` })
    expect(text(await batch.call('read_file', { path: 'a\\b.txt' }))).toBe('1\t1')
    expect(text(await batch.call('read_file', { path: '~$c.docx' }))).toBe('1\t2')
  })

  test('the path that a command shows is inside too', async () => {
    await put('a.txt', 'here\n')
    const pwd = text(await batch.call('run_shell_command', { command: 'pwd' }))
    expect(text(await batch.call('read_file', { path: `${pwd}/a.txt` }))).toBe('1\there')
  })

  test('a link out of the workspace leads nowhere', async () => {
    await batch.call('run_shell_command', { command: 'ln -s /etc/passwd link; ln -s /etc folder' })
    for (const path of ['link', 'folder/passwd']) {
      const outcome = await batch.call('read_file', { path })
      expect(outcome.status).toBe('failed')
      expect(text(outcome)).not.toContain('root:')
    }
    expect((await batch.call('write_file', { path: 'folder/x', content: '' })).status).toBe('failed')
  })
})

describe('names that look the same', () => {
  const [composed, decomposed] = ['Absch\u00E4tzung.txt', 'Abscha\u0308tzung.txt']
  const names = async () => (await sandbox.files.list('u\u0308')).map(({ path }) => path)
  const path = `\u00FC/${composed}`

  test('are one name to the file tools', async () => {
    await put(`u\u0308/${decomposed}`, 'one\n')
    expect(text(await batch.call('read_file', { path }))).toBe('1\tone')
    expect((await batch.call('edit_file', { path, old_text: 'one', new_text: 'two' })).status).toBe(
      'completed',
    )
    expect((await batch.call('write_file', { path, content: 'three' })).status).toBe('completed')
    expect(await content(`u\u0308/${decomposed}`)).toBe('three')
    expect(text(await batch.call('list_directory', { path: '\u00FC' }))).toContain(decomposed)
    expect(await names()).toEqual([`u\u0308/${decomposed}`])
  })

  test('are two files where there are two', async () => {
    await put(`u\u0308/${decomposed}`, 'one')
    await put(`u\u0308/${composed}`, 'two')
    expect(text(await batch.call('read_file', { path }))).toBe('1\ttwo')
    expect((await batch.call('write_file', { path: '\u00FC/\u00E9', content: 'new' })).status).toBe(
      'completed',
    )
    expect(await names()).toContain('u\u0308/\u00E9')
  })

  test.skipIf(!hasRipgrep)('are found by either', async () => {
    await put(decomposed, 'word')
    for (const pattern of [composed, decomposed])
      expect(text(await batch.call('glob', { pattern }))).toContain(decomposed)
    expect(text(await batch.call('search_text', { pattern: 'word', glob: composed }))).toContain(decomposed)
  })
})

describe('read_file', () => {
  test('numbers the lines', async () => {
    await put('a.txt', 'one\ntwo\n\nfour')
    expect(text(await batch.call('read_file', { path: 'a.txt' }))).toBe('1\tone\n2\ttwo\n3\t\n4\tfour')
  })

  test('pages: every page says how to go on, and together they are the file', async () => {
    const lines = Array.from({ length: 2500 }, (_, index) => `line ${index + 1} ${'é'.repeat(index % 50)}`)
    await put('a.txt', `${lines.join('\n')}\n`)
    const read: string[] = []
    let offset: number | undefined = 1
    for (let page = 0; offset !== undefined && page < 100; page++) {
      const shown = text(await batch.call('read_file', { path: 'a.txt', offset }, `p${page}`))
      expect(shown.length).toBeLessThanOrEqual(10_000)
      read.push(
        ...shown
          .split('\n')
          .filter((line) => /^\d+\t/.test(line))
          .map((line) => line.replace(/^\d+\t/, '')),
      )
      offset = Number(/Go on with offset (\d+)\./.exec(shown)?.[1] ?? 0) || undefined
    }
    expect(read).toEqual(lines)
  })

  test('offset and limit', async () => {
    await put('a.txt', '1\n2\n3\n4\n')
    expect(text(await batch.call('read_file', { path: 'a.txt', offset: 2, limit: 2 }))).toBe(
      '2\t2\n3\t3\n[There is more: these are lines 2–3 of a file of 8 bytes. Go on with offset 4.]',
    )
    expect(await batch.call('read_file', { path: 'a.txt', offset: 9 })).toMatchObject({
      reason: 'invalid_arguments',
      forModel: expect.stringContaining('has 4 lines'),
    })
  })

  test('long lines, empty files and CR LF', async () => {
    await put('long.txt', `${'x'.repeat(5000)}\nnext`)
    expect(text(await batch.call('read_file', { path: 'long.txt' }))).toMatch(
      /^1\tx{2000} \[… 3,000 more characters in this line\]\n2\tnext$/,
    )
    await put('empty.txt', '')
    expect(text(await batch.call('read_file', { path: 'empty.txt' }))).toBe('/workspace/empty.txt is empty.')
    await put('crlf.txt', 'a\r\nb\r\n')
    expect(text(await batch.call('read_file', { path: 'crlf.txt' }))).toBe(
      '1\ta\n2\tb\n[Its lines end with CR LF.]',
    )
  })

  test('binary files are refused with their type and size', async () => {
    await put('a.png', Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 3]))
    await put('b.bin', Buffer.from([65, 0, 66]))
    expect(text(await batch.call('read_file', { path: 'a.png' }))).toMatch(/is a PNG image of 8 bytes/)
    expect(text(await batch.call('read_file', { path: 'b.bin' }))).toMatch(/is binary data of 3 bytes/)
  })

  test('a missing file where more is than can be listed is a missing file all the same', async () => {
    const deep = Array.from({ length: 15 }, (_, n) => String(n).padStart(254, 'd')).join('/')
    await put(`${deep}/there`, '')
    await batch.call('run_shell_command', { command: `cd ${deep} && seq 2300 | xargs touch` })
    await expect(sandbox.files.list(deep)).rejects.toMatchObject({ code: 'too_large' })
    const missing = await batch.call('read_file', { path: `${deep}/the` })
    expect(missing).toMatchObject({ status: 'failed', reason: 'tool_error' })
    expect(text(missing)).toMatch(/^There is no file \S+\/the\.$/)
  })

  test('a missing file: the name that was probably meant', async () => {
    await put('src/index.ts', '')
    expect(await batch.call('read_file', { path: 'src/indx.ts' })).toMatchObject({
      status: 'failed',
      reason: 'tool_error',
      forModel: 'There is no file /workspace/src/indx.ts. Did you mean /workspace/src/index.ts?',
    })
    expect(text(await batch.call('read_file', { path: 'src' }))).toContain('use list_directory')
  })

  test('what is no regular file is refused at once', async () => {
    await batch.call('run_shell_command', { command: 'mkfifo pipe' })
    expect(text(await batch.call('read_file', { path: 'pipe' }))).toContain('not a regular file')
  })
})

describe('write_file', () => {
  test('makes directories, says how many bytes, shows the change', async () => {
    expect(await batch.call('write_file', { path: 'a/b/c.txt', content: 'héllo\n' })).toMatchObject({
      status: 'completed',
      forModel: 'Wrote 7 bytes to /workspace/a/b/c.txt',
      content: [{ type: 'diff', path: '/workspace/a/b/c.txt', oldText: null, newText: 'héllo\n' }],
    })
    expect(await content('a/b/c.txt')).toBe('héllo\n')
    const again = await batch.call('write_file', { path: 'a/b/c.txt', content: 'bye\n' })
    expect(again.content).toEqual([
      { type: 'diff', path: '/workspace/a/b/c.txt', oldText: 'héllo\n', newText: 'bye\n' },
    ])
  })

  test('a long file is shown by what changed', async () => {
    const lines = Array.from({ length: 30_000 }, (_, index) => `line ${index}`)
    await put('a.txt', lines.join('\n'))
    const changed = lines.with(15_000, 'changed').join('\n')
    const [diff] = (await batch.call('write_file', { path: 'a.txt', content: changed })).content ?? []
    expect(diff).toEqual({
      type: 'diff',
      path: '/workspace/a.txt',
      oldText: lines.slice(14_997, 15_004).join('\n'),
      newText: lines.with(15_000, 'changed').slice(14_997, 15_004).join('\n'),
    })
  })

  test('a large binary or new content', async () => {
    await put('b.bin', Buffer.from([0, 1, 2]))
    expect((await batch.call('write_file', { path: 'b.bin', content: 'x' })).content).toBeUndefined()
    expect(text(await batch.call('write_file', { path: 'big.txt', content: 'y'.repeat(3_000_000) }))).toBe(
      'Wrote 3000000 bytes to /workspace/big.txt',
    )
  })

  test('directories are not written over', async () => {
    await put('dir/x', '')
    expect(text(await batch.call('write_file', { path: 'dir', content: '' }))).toContain('is a directory')
    expect((await batch.call('write_file', { path: '/workspace', content: '' })).status).toBe('failed')
  })
})

describe('edit_file', () => {
  const edit = (old_text: string, new_text: string, more = {}) =>
    batch.call('edit_file', { path: 'a.txt', old_text, new_text, ...more })

  test('replaces exactly one place, with any characters', async () => {
    await put('a.txt', 'let a = $1\nlet b = 2\n')
    expect(await edit('$1', "$& $` $' $$")).toMatchObject({
      status: 'completed',
      forModel: 'Changed 1 place in /workspace/a.txt',
    })
    expect(await content('a.txt')).toBe("let a = $& $` $' $$\nlet b = 2\n")
  })

  test('several places: refused with their lines, or all', async () => {
    await put('a.txt', 'x\ny\nx\nx\n')
    expect(await edit('x', 'z')).toMatchObject({
      status: 'failed',
      forModel: expect.stringContaining('found 3 times in /workspace/a.txt (lines 1, 3, 4)'),
    })
    expect(text(await edit('x', 'z', { replace_all: true }))).toBe('Changed 3 places in /workspace/a.txt')
    expect(await content('a.txt')).toBe('z\ny\nz\nz\n')
  })

  test('not found: the same text with other white space, or the nearest line', async () => {
    await put('a.txt', 'function a() {\n\treturn  1\n}\n')
    expect(text(await edit('function a() {\n    return 1', 'x'))).toContain(
      'other white space. The exact lines are:\n1\tfunction a() {\n2\t\treturn  1',
    )
    expect(text(await edit('return 1 + a', 'x'))).toContain('nearest lines are:\n2\t\treturn  1')
    expect(text(await edit('nothing like that', 'x'))).toContain('Nothing in the file is like it')
    expect(await edit('same', 'same')).toMatchObject({ reason: 'invalid_arguments' })
    expect(await content('a.txt')).toBe('function a() {\n\treturn  1\n}\n')
  })

  test('CR LF, a byte order mark and other bytes stay as they are', async () => {
    await put('a.txt', '\uFEFFone\r\ntwo\r\nthree\r\n')
    expect((await edit('one\ntwo', '1\n2')).status).toBe('completed')
    expect(await content('a.txt')).toBe('\uFEFF1\r\n2\r\nthree\r\n')
  })

  test.each([
    ['UTF-16', Buffer.from('\uFEFFgröße\r\n', 'utf16le'), Buffer.from('\uFEFFgröße\r\n尺\r\n', 'utf16le')],
    ['Windows-1252', Buffer.from('größe\r\n', 'latin1'), undefined],
  ])('%s stays, or what it cannot hold is refused', async (name, before, after) => {
    await put('a.txt', before)
    expect(text(await batch.call('read_file', { path: 'a.txt' }))).toMatch(
      new RegExp(`^1\\tgröße\n\\[The file is .*${name}.* Its lines end with CR LF\\.]$`),
    )
    expect((await edit('größe', 'größe')).status).toBe('failed')
    expect((await edit('größe', 'größe\n尺')).status).toBe(after === undefined ? 'failed' : 'completed')
    expect(Buffer.from(await sandbox.files.read('a.txt'))).toEqual(after ?? before)
    expect((await edit('größe', 'Größe')).status).toBe('completed')
    expect((await sandbox.files.read('a.txt')).includes(0xf6)).toBe(true)
  })

  test('bytes of no known encoding are shown as lost, and neither edited nor written over', async () => {
    const bytes = Buffer.from('gr\xC3\xB6\xC3\x9Fe \xFF\n', 'latin1')
    await put('a.txt', bytes)
    expect(text(await batch.call('read_file', { path: 'a.txt' }))).toBe(
      '1\tgröße \uFFFD\n[Some bytes are not UTF-8 and are shown as \uFFFD.]',
    )
    expect(text(await edit('größe', 'x'))).toContain('no encoding that is known')
    expect(text(await batch.call('write_file', { path: 'a.txt', content: 'x \uFFFD\n' }))).toContain(
      'lose them',
    )
    expect(Buffer.from(await sandbox.files.read('a.txt'))).toEqual(bytes)
  })

  test.each([
    ['half a pair', Buffer.from('\uFEFFone \uD800\n', 'utf16le')],
    ['half a character', Buffer.concat([Buffer.from('\uFEFFone\n', 'utf16le'), Buffer.from([0x61])])],
    ['binary data', Buffer.concat([Buffer.from('\uFEFFone\n', 'utf16le'), Buffer.alloc(64)])],
  ])('UTF-16 with %s is not edited', async (_, bytes) => {
    await put('a.txt', bytes)
    expect((await edit('one', '1')).status).toBe('failed')
    expect(Buffer.from(await sandbox.files.read('a.txt'))).toEqual(bytes)
  })

  test('a guessed encoding takes no character that was not in the replaced text', async () => {
    const bytes = Buffer.from('größe, klein\n', 'latin1')
    await put('a.txt', bytes)
    expect(text(await edit('größe, klein', 'größe, schön é'))).toContain('windows-1252 is a guess')
    expect(text(await edit('klein', 'schön'))).toContain('windows-1252 is a guess')
    expect(Buffer.from(await sandbox.files.read('a.txt'))).toEqual(bytes)
    expect((await edit('größe, klein', 'klein, größe')).status).toBe('completed')
    expect(Buffer.from(await sandbox.files.read('a.txt'))).toEqual(Buffer.from('klein, größe\n', 'latin1'))
  })

  test('a file whose encoding is a guess is not written over', async () => {
    const bytes = Buffer.from([0xcf, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2, 0x0a])
    for (const tail of [0, 600_000]) {
      const file = Buffer.concat([bytes, Buffer.alloc(tail, 0x61)])
      await put('a.txt', file)
      const outcome = await batch.call('write_file', { path: 'a.txt', content: 'Ïðèâåò 2\n' })
      expect(text(outcome)).toContain('its encoding is a guess')
      expect(Buffer.from(await sandbox.files.read('a.txt'))).toEqual(file)
    }
  })

  test('a write over UTF-16 reports the change of encoding', async () => {
    await put('a.txt', Buffer.from('\uFEFFone\n', 'utf16le'))
    expect(text(await batch.call('write_file', { path: 'a.txt', content: 'two\n' }))).toBe(
      'Wrote 4 bytes to /workspace/a.txt. It was utf-16le before and is UTF-8 now.',
    )
    expect(await content('a.txt')).toBe('two\n')
  })

  test('a text with a late NUL is read and edited', async () => {
    const rest = `${'x'.repeat(9000)}\0\n`
    await put('a.txt', `one\n${rest}`)
    expect((await batch.call('read_file', { path: 'a.txt' })).status).toBe('completed')
    expect((await edit('one', '1')).status).toBe('completed')
    expect(await content('a.txt')).toBe(`1\n${rest}`)
  })

  test.each([
    ['a\r\nb\r\nc\r\n', 'b', 'b1\nb2', 'a\r\nb1\r\nb2\r\nc\r\n'],
    ['a\r\nb\r\nc\r\n', 'a\nb', 'a\nd\r\nb', 'a\r\nd\r\nb\r\nc\r\n'],
    ['a\r\nb\r\nc\r\n', 'a\r\nb', 'a\nd\r\nb', 'a\nd\r\nb\r\nc\r\n'],
    ['a\nb\nc\n', 'b', 'b1\r\nb2', 'a\nb1\r\nb2\nc\n'],
    ['a\nb\nc\n', 'a\nb', 'a\r\nd', 'a\r\nd\nc\n'],
    ['a\r\nb\nc', 'b\nc', 'd\ne', 'a\r\nd\ne'],
    ['a', 'a', 'b\r\nc', 'b\r\nc'],
  ])(
    'what is inserted into %j gets CR LF only where that fits',
    async (before, old_text, new_text, after) => {
      await put('a.txt', before)
      expect((await edit(old_text, new_text)).status).toBe('completed')
      expect(await content('a.txt')).toBe(after)
    },
  )

  test('CR LF in old_text does not match a plain line end', async () => {
    await put('a.txt', 'a\nb\n')
    expect(text(await edit('a\r\nb', 'c'))).toContain('The exact lines are:\n1\ta\n2\tb')
    expect(await content('a.txt')).toBe('a\nb\n')
  })
})

describe('run_shell_command', () => {
  const run = async (command: string) => text(await batch.call('run_shell_command', { command }))

  test.each([
    ['git commit', 'git -c core.editor="sleep 60" commit --allow-empty'],
    ['git rebase', 'git commit --allow-empty -qm a && git -c sequence.editor="sleep 60" rebase -i --root'],
    ['programs that start $EDITOR by a shell', 'sh -c "$EDITOR file"'],
    ['programs that start $VISUAL by a shell', 'sh -c "$VISUAL file"'],
  ])('%s opens no editor, and says so', async (_, command) => {
    const git = 'git init -q . && git config user.name A && git config user.email a@example.org'
    expect(await run(`${git} && ${command}`)).toMatch(/No editor runs here[^]*\[exit code \d+\]$/)
    expect(await run('rm -rf .git; EDITOR="echo mine" && sh -c "$EDITOR file"')).toContain('mine file')
  })

  test('a command with CR LF runs as one with LF', async () => {
    expect(await run('if true; then\r\n echo c\r\nfi\r\n')).toBe('c')
    expect(await run("printf '%s' 'a\r\n\r\n' | wc -c")).toBe('5')
    expect(await run("printf '%s' 'a\r' | od -An -c\n")).toMatch(/a +\\r/)
  })
})

describe('list_directory', () => {
  test('names in order, directories marked, sizes', async () => {
    expect(text(await batch.call('list_directory', {}))).toBe('/workspace is empty.')
    await put('b.txt', '12345')
    await put('a/x', '')
    expect(text(await batch.call('list_directory', {}))).toBe('/workspace has 2 entries:\na/\nb.txt  5 bytes')
    expect(text(await batch.call('list_directory', { path: 'b.txt' }))).toContain('not a directory')
    expect(text(await batch.call('list_directory', { path: 'c' }))).toContain('no directory /workspace/c')
  })

  test('a long list is cut and says so', async () => {
    await batch.call('run_shell_command', { command: 'touch file{1..3000}' })
    const shown = text(await batch.call('list_directory', {}))
    expect(shown.length).toBeLessThanOrEqual(10_000)
    expect(shown).toMatch(/^\/workspace has 3,000 entries:\n[^]*left out here/)
  })
})

describe.skipIf(!hasRipgrep)('glob and search_text (need ripgrep, which the sandbox image has)', () => {
  beforeEach(async () => {
    await put('a.ts', 'const A = 1\nconst b = 2\n')
    await put('src/b.ts', 'export const c = 3\n')
    await put('src/deep/c.test.ts', '// (nothing) here\n')
    await put('src/[x]/d.md', 'A line\n')
    await put('.hidden/e.ts', '')
    await put('.git/f.ts', 'const g = 1')
    await put('.tool-outputs/g.ts', 'const h = 1')
  })

  test('glob', async () => {
    expect(text(await batch.call('glob', { pattern: '**/*.ts' }))).toBe(
      '.hidden/e.ts\na.ts\nsrc/b.ts\nsrc/deep/c.test.ts',
    )
    expect(text(await batch.call('glob', { pattern: '*.ts' }))).toBe('a.ts')
    expect(text(await batch.call('glob', { pattern: '*.ts', path: 'src' }))).toBe('src/b.ts')
    expect(text(await batch.call('glob', { pattern: '/workspace/src/*.ts' }))).toBe('src/b.ts')
    expect(text(await batch.call('glob', { pattern: '*', path: 'src/[x]' }))).toBe('src/[x]/d.md')
    expect(text(await batch.call('glob', { pattern: '*.md' }))).toBe(
      'No file in /workspace matches *.md. **/*.md looks at every depth.',
    )
    expect(reason(await batch.call('glob', { pattern: '../*' }))).toBe('path_outside')
    expect(reason(await batch.call('glob', { pattern: '{a' }))).toBe('invalid_arguments')
  })

  test('search_text', async () => {
    expect(text(await batch.call('search_text', { pattern: 'const' }))).toBe(
      'a.ts:1:const A = 1\na.ts:2:const b = 2\nsrc/b.ts:1:export const c = 3',
    )
    expect(text(await batch.call('search_text', { pattern: 'const', path: 'src' }))).toBe(
      'src/b.ts:1:export const c = 3',
    )
    expect(text(await batch.call('search_text', { pattern: 'a', ignore_case: true, glob: '*.md' }))).toBe(
      'src/[x]/d.md:1:A line',
    )
    expect(text(await batch.call('search_text', { pattern: '\\(nothing\\)' }))).toBe(
      'src/deep/c.test.ts:1:// (nothing) here',
    )
    expect(text(await batch.call('search_text', { pattern: 'zzz', glob: '*.ts' }))).toBe(
      'Nothing in /workspace matches zzz in files that match *.ts.',
    )
    expect(await batch.call('search_text', { pattern: '(' })).toMatchObject({
      reason: 'invalid_arguments',
      forModel: expect.stringContaining('unclosed group'),
    })
  })

  test('a pattern is no option and no shell text', async () => {
    await put('x.txt', '--files $(id) `id`\n')
    expect(text(await batch.call('search_text', { pattern: '--files' }))).toBe('x.txt:1:--files $(id) `id`')
    expect(text(await batch.call('search_text', { pattern: '\\$\\(id\\) `id`' }))).toBe(
      'x.txt:1:--files $(id) `id`',
    )
    await put('-n', 'dash\n')
    expect(text(await batch.call('search_text', { pattern: 'dash', path: '-n' }))).toBe('-n:1:dash')
  })
})

describe('the others', () => {
  test('update_plan shows the plan', async () => {
    const entries = [
      { content: 'look', status: 'completed' },
      { content: 'do', status: 'in_progress', priority: 'high' },
    ]
    expect(text(await batch.call('update_plan', { entries }))).toBe(
      'The plan is shown to the user: 1 of 2 steps completed. Now: do',
    )
    expect(batch.log.find((event) => event.sessionUpdate === 'plan')).toMatchObject({
      entries: [
        { content: 'look', status: 'completed', priority: 'medium' },
        { content: 'do', status: 'in_progress', priority: 'high' },
      ],
    })
  })

  test('echo', async () => {
    const now = Date.UTC(2026, 10, 29, 12)
    batch = new TestBatch({ now: () => now })
    const digits = '{"id":12345678901234567890,"é":[1e400,null]}'
    const sent: [string, string, number][] = [
      ['"hé"', 'string', 5],
      ['5', 'number', 1],
      ['1234567890123456789.5', 'number', 21],
      ['"5"', 'string', 3],
      ['false', 'boolean', 5],
      ['null', 'null', 4],
      ['[[]]', 'array', 4],
      [digits, 'object', Buffer.byteLength(digits)],
    ]
    for (const [json, type, bytes] of sent) {
      const [outcome] = await batch.run([{ id: json, name: 'echo', args: `{"value":${json}}` }])
      expect(outcome).toMatchObject({
        forModel: `{"value":${json},"type":"${type}","bytes":${bytes},"receivedAt":"2026-11-29T12:00:00.000Z"}`,
        data: { type, bytes, receivedAt: '2026-11-29T12:00:00.000Z' },
      })
    }
    expect(text(await batch.call('echo', { text: 'hi' }))).toMatch(/value: is missing.*no argument "text"/s)
  })
})
