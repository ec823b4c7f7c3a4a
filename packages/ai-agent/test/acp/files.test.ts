import { EXT } from '@sandlot/shared/acp/meta'
import {
  MAX_LISTED,
  MAX_PIECE_BYTES,
  MAX_TRASHED,
  directoryList,
  filePiece,
  fileRemoved,
  fileRestored,
  fileWritten,
  filesFound,
  trashList,
} from '@sandlot/shared/workspace/files'
import type { Rule } from '@sandlot/shared/chat/rules'
import { DEFAULT_LIMITS } from '@sandlot/sandbox/limits'
import { expect, onTestFinished, test, vi } from 'vitest'
import { AgentBench } from '../support/agent-fixture.ts'
import { openLocalSandboxes } from '../tools/local-sandboxes.ts'
import { ADA, BOB, connect } from './test-client.ts'

async function open(rules: readonly Rule[] = [], change: Parameters<typeof openLocalSandboxes>[0] = {}) {
  const bench = await AgentBench.start()
  const local = await openLocalSandboxes(change)
  const core = await bench.core()
  const workspace = async (userId: string) => (await local.sandboxes.acquire(userId)).files
  const one = await connect(core, { parts: { workspace, rulesOf: async () => rules } })
  onTestFinished(async () => {
    await one[Symbol.asyncDispose]()
    await bench[Symbol.asyncDispose]()
    await local.dispose()
  })
  const ask = (what: object, user: object = ADA) => one.request(EXT.files, { user, ask: what })
  const sandbox = () => local.sandboxes.acquire(ADA.id)
  const restart = () => local.restartSandbox(ADA.id)
  return { ask, workspace, sandbox, restart, base64: (text: string) => Buffer.from(text).toString('base64') }
}

test('a file is put there, listed and read in pieces; another person has none of it', async () => {
  const { ask, base64, workspace } = await open()
  const long = `${'a line of text\n'.repeat(60_000)}the end`
  expect(await ask({ do: 'write', path: 'data/long.txt', data: base64(long), replace: false })).toMatchObject(
    {
      size: long.length,
    },
  )
  expect(directoryList.parse(await ask({ do: 'list', path: '' }))).toMatchObject({
    entries: [{ name: 'data', kind: 'directory' }],
    left: 0,
  })
  expect(directoryList.parse(await ask({ do: 'list', path: 'data' }))).toMatchObject({
    entries: [{ name: 'long.txt', kind: 'file', size: long.length }],
  })
  let read = ''
  let pieces = 0
  for (; read.length < long.length; pieces++) {
    const piece = filePiece.parse(await ask({ do: 'read', path: 'data/long.txt', offset: read.length }))
    expect(piece.size).toBe(long.length)
    read += Buffer.from(piece.data, 'base64').toString()
  }
  expect(pieces).toBeGreaterThan(1)
  expect(read).toBe(long)
  const part = filePiece.parse(await ask({ do: 'read', path: 'data/long.txt', offset: 2, length: 4 }))
  expect(part).toMatchObject({ size: long.length, data: base64('line') })
  expect(directoryList.parse(await ask({ do: 'list', path: '' }, BOB)).entries).toEqual([])
  expect((await (await workspace(BOB.id)).list('')).length).toBe(0)
})

test('what is there is replaced only when that was said', async () => {
  const { ask, base64 } = await open()
  const write = (text: string, replace: boolean) =>
    ask({ do: 'write', path: 'note.txt', data: base64(text), replace })
  await write('first', false)
  await expect(write('second', false)).rejects.toMatchObject({ data: { code: 'conflict' } })
  await write('third', true)
  expect(filePiece.parse(await ask({ do: 'read', path: 'note.txt', offset: 0 })).data).toBe(base64('third'))
})

test.each([
  ['a file that is not there', { do: 'read', path: 'missing.txt', offset: 0 }, 'not_found', 'does not exist'],
  ['a directory to read', { do: 'read', path: '', offset: 0 }, 'bad_request', 'is a directory'],
  ['a way up', { do: 'list', path: '../other' }, 'bad_request', 'goes upwards'],
  ['a place outside', { do: 'list', path: '/etc' }, 'bad_request', 'outside the workspace'],
  ['a way up to write', { do: 'write', path: '../x', data: '' }, 'bad_request', 'goes upwards'],
  ['bytes that are none', { do: 'write', path: 'x', data: 'not base64!' }, 'bad_request', 'data'],
  [
    'too many bytes',
    { do: 'write', path: 'x', data: 'AAAA'.repeat(MAX_PIECE_BYTES / 3 + 1) },
    'too_large',
    '',
  ],
])('%s: refused with a reason', async (_what, what, code, words) => {
  const { ask } = await open()
  await expect(ask({ replace: true, ...what })).rejects.toMatchObject({
    data: { code },
    message: expect.stringContaining(words),
  })
})

test('a directory of very many entries is told in part, and how many are left', async () => {
  const { ask, workspace } = await open()
  const files = await workspace(ADA.id)
  const names = Array.from({ length: MAX_LISTED + 3 }, (_, i) => `f${String(i).padStart(5, '0')}`)
  for (const name of names) await files.mkdir(name)
  const { entries, left } = directoryList.parse(await ask({ do: 'list', path: '' }))
  expect([entries.length, left, entries.at(-1)?.name]).toEqual([MAX_LISTED, 3, names[MAX_LISTED - 1]])
  const page = async (after: string) => directoryList.parse(await ask({ do: 'list', path: '', after }))
  const next = await page(entries.at(-1)?.name ?? '')
  expect([next.entries.map(({ name }) => name), next.left]).toEqual([names.slice(MAX_LISTED), 0])
  expect(await page('g')).toEqual({ entries: [], left: 0 })
})

/** Links as a cloned repository brings them. */
async function withLinks(rules: readonly Rule[] = []) {
  const opened = await open(rules)
  const { sandbox } = opened
  const made =
    'mkdir -p clone/.git docs secrets; echo k > secrets/k; ln -s .git clone/notes; ln -s secrets open; ln -s docs d'
  const running = await (await sandbox()).run({ id: 'a'.repeat(32), command: made, autoAcknowledge: true })
  expect((await running.exit).code).toBe(0)
  return opened
}

test('a link leads no upload into files that programs take orders from', async () => {
  const { ask, workspace, base64 } = await withLinks()
  const write = (path: string) => ask({ do: 'write', path, data: base64('x'), replace: true })
  for (const path of ['clone/notes/config', 'clone/notes/hooks/pre-commit'])
    await expect(write(path), path).rejects.toMatchObject({ data: { code: 'forbidden' } })
  await write('d/plain')
  expect(Buffer.from(await (await workspace(ADA.id)).read('docs/plain')).toString()).toBe('x')
  expect(await (await workspace(ADA.id)).list('clone/.git')).toEqual([])
})

test('what a rule denies is not reached through a link either', async () => {
  const { ask, base64 } = await withLinks([
    { id: 'r1', effect: 'deny', match: { file: 'secrets/**' }, origin: 'user', createdAt: 0 },
  ])
  for (const what of [
    { do: 'read', path: 'open/k', offset: 0 },
    { do: 'list', path: 'open' },
    { do: 'write', path: 'open/k', data: base64('x'), replace: true },
  ])
    await expect(ask(what)).rejects.toMatchObject({ data: { code: 'forbidden' } })
  expect(filePiece.parse(await ask({ do: 'read', path: 'secrets/k', offset: 0 })).size).toBe(2)
})

test('nothing is uploaded to where Sandlot keeps its own', async () => {
  const { ask, base64 } = await open()
  for (const path of ['.tool-outputs/.sessions', '.tool-outputs/x/y'])
    await expect(ask({ do: 'write', path, data: base64('x'), replace: true })).rejects.toMatchObject({
      data: { code: 'forbidden' },
    })
})

const refused = (code: string) => ({ data: { code } })

test('a file of several pieces is there when the last has come; a repeated piece is passed over, a gap is refused', async () => {
  const { ask, base64, workspace } = await open()
  const piece = (text: string, offset: number, more = true) =>
    ask({ do: 'write', path: 'in/two', data: base64(text), replace: false, upload: 'u1', offset, more })
  expect(await piece('hello ', 0)).toEqual({ written: 6 })
  expect(await piece('lo wor', 3)).toEqual({ written: 9 })
  await expect(piece('x', 20)).rejects.toMatchObject(refused('conflict'))
  // Bytes after a gap cancel the whole.
  await expect(piece('ld', 9, false)).rejects.toMatchObject(refused('conflict'))
  expect(await piece('hello ', 0)).toEqual({ written: 6 })
  await expect(ask({ do: 'read', path: 'in/two', offset: 0 })).rejects.toMatchObject(refused('not_found'))
  expect(await piece('world', 6, false)).toMatchObject({ size: 11 })
  const files = await workspace(ADA.id)
  expect(Buffer.from(await files.read('in/two')).toString()).toBe('hello world')
  await expect(piece('again', 0)).rejects.toMatchObject(refused('conflict'))
  expect((await files.list('')).map(({ path }) => path)).toEqual(['in'])
})

test('an upload that is given up leaves nothing, and of a person a few are under way', async () => {
  const { ask, base64, workspace } = await open()
  const begin = (n: number, user: object = ADA) =>
    ask({ do: 'write', path: `f${n}`, data: base64('x'), replace: false, upload: `u${n}`, more: true }, user)
  for (let n = 0; n < 8; n++) await begin(n)
  await expect(begin(8)).rejects.toMatchObject(refused('rate_limited'))
  await begin(8, BOB)
  for (let n = 0; n < 8; n++) await ask({ do: 'abort', upload: `u${n}` })
  await ask({ do: 'abort', upload: 'never' })
  expect(await (await workspace(ADA.id)).list('')).toEqual([])
  await begin(9)
})

test('a text is saved only where it is what was read', async () => {
  const { ask, base64, workspace } = await open()
  const files = await workspace(ADA.id)
  const save = (text: string, version: object) =>
    ask({ do: 'write', path: 'n.txt', data: base64(text), replace: true, version })
  const first = fileWritten.parse(
    await ask({ do: 'write', path: 'n.txt', data: base64('one'), replace: false }),
  )
  const second = fileWritten.parse(await save('three', first))
  expect(await save('mine', first)).toEqual({ conflict: second })
  expect(Buffer.from(await files.read('n.txt')).toString()).toBe('three')
  await files.remove('n.txt')
  expect(await save('mine', second)).toEqual({ conflict: null })
})

test('entries are made and moved, never onto others; a link is moved itself', async () => {
  const { ask, workspace } = await withLinks()
  const files = await workspace(ADA.id)
  await ask({ do: 'mkdir', path: 'new/deep' })
  await expect(ask({ do: 'mkdir', path: 'docs' })).rejects.toMatchObject(refused('conflict'))
  await files.write('docs/a', Buffer.from('a'))
  await ask({ do: 'move', path: 'docs/a', to: 'new/deep/b' })
  expect((await files.stat('new/deep/b')).size).toBe(1)
  await expect(ask({ do: 'move', path: 'docs', to: 'new' })).rejects.toMatchObject(refused('conflict'))
  await expect(ask({ do: 'move', path: 'new', to: 'new/deep/new' })).rejects.toMatchObject(
    refused('bad_request'),
  )
  await expect(ask({ do: 'move', path: 'docs/none', to: 'x' })).rejects.toMatchObject(refused('not_found'))
  await expect(ask({ do: 'move', path: '', to: 'x' })).rejects.toMatchObject(refused('bad_request'))
  await expect(ask({ do: 'move', path: 'docs', to: '../x' })).rejects.toMatchObject(refused('bad_request'))
  await ask({ do: 'move', path: 'd', to: 'link-to-docs' })
  expect((await files.list('')).map(({ path, kind }) => `${path} ${kind}`)).toContain('link-to-docs symlink')
  for (const [path, to] of [
    ['.tool-outputs', 'mine'],
    ['docs', '.tool-outputs/x'],
    ['docs', 'clone/notes/x'],
  ])
    await expect(ask({ do: 'move', path, to }), path).rejects.toMatchObject(refused('forbidden'))
})

test('what is removed goes to the trash and comes back, under another name where something is', async () => {
  const { ask, base64, workspace } = await open()
  const files = await workspace(ADA.id)
  await ask({ do: 'write', path: 'a/b/note.txt', data: base64('kept'), replace: false })
  const remove = async (path: string) => fileRemoved.parse(await ask({ do: 'remove', path })).id
  const [id, folder] = [await remove('a/b/note.txt'), await remove('a')]
  expect((await files.list('')).map(({ path }) => path)).toEqual(['.tool-outputs'])
  expect(
    trashList
      .parse(await ask({ do: 'trash' }))
      .entries.map(({ path }) => path)
      .toSorted(),
  ).toEqual(['a', 'a/b/note.txt'])
  expect(fileRestored.parse(await ask({ do: 'restore', id })).path).toBe('a/b/note.txt')
  expect(fileRestored.parse(await ask({ do: 'restore', id: folder })).path).toBe('a (2)')
  await files.write('x/one.tar.gz', Buffer.from('1'))
  const third = await remove('x/one.tar.gz')
  await files.write('x/one.tar.gz', Buffer.from('2'))
  expect(fileRestored.parse(await ask({ do: 'restore', id: third })).path).toBe('x/one.tar (2).gz')
  await expect(ask({ do: 'restore', id })).rejects.toMatchObject(refused('not_found'))
  await expect(ask({ do: 'restore', id: '../../etc' })).rejects.toMatchObject(refused('bad_request'))
  expect(await ask({ do: 'remove', path: 'a', forever: true })).toEqual({ id: null })
  await expect(ask({ do: 'remove', path: '.tool-outputs' })).rejects.toMatchObject(refused('forbidden'))
  await expect(ask({ do: 'remove', path: 'x/..' })).rejects.toMatchObject(refused('bad_request'))
})

test('the trash keeps so much and so long, and can be emptied', async () => {
  const { ask, workspace } = await open()
  const files = await workspace(ADA.id)
  const old = Date.now() - 8 * 86_400_000
  await files.mkdir(`.tool-outputs/.trash/${old}-1-00000000/old`)
  for (let n = 0; n < MAX_TRASHED + 2; n++)
    await files.mkdir(`.tool-outputs/.trash/${Date.now() - 1_000 + n}-1-0000000a/f${n}`)
  await files.mkdir('last')
  await ask({ do: 'remove', path: 'last' })
  const { entries } = trashList.parse(await ask({ do: 'trash' }))
  expect([entries.length, entries[0]?.path, entries.at(-1)?.path]).toEqual([MAX_TRASHED, 'last', 'f3'])
  expect((await files.list('.tool-outputs/.trash')).length).toBe(MAX_TRASHED)
  await ask({ do: 'empty_trash' })
  await ask({ do: 'empty_trash' })
  expect(await ask({ do: 'trash' })).toEqual({ entries: [] })
})

test('files are found by some letters of their names, the best first, without outputs and trash', async () => {
  const { ask, workspace } = await withLinks()
  const files = await workspace(ADA.id)
  for (const path of [
    'src/main.ts',
    'src/domain.ts',
    'node_modules/main.ts/x',
    'docs/my plan.md',
    '.tool-outputs/main.ts',
  ])
    await files.write(path, Buffer.from(path))
  const find = async (query: string, most = 20) => filesFound.parse(await ask({ do: 'search', query, most }))
  expect((await find('main')).entries.map(({ path }) => path)).toEqual([
    'src/main.ts',
    'src/domain.ts',
    'node_modules/main.ts',
    'node_modules/main.ts/x',
  ])
  expect((await find('MYPL')).entries.map(({ path }) => path)).toEqual(['docs/my plan.md'])
  expect((await find('sdm')).entries.map(({ path }) => path)).toContain('src/domain.ts')
  expect(await find('main', 1)).toMatchObject({ more: true, entries: [{ path: 'src/main.ts' }] })
  expect(await find('nothing like it')).toEqual({ entries: [], more: false })
  // Without a query, the last changed files; a link is not followed.
  expect((await find('')).entries.map(({ path }) => path)).toEqual(
    expect.arrayContaining(['docs/my plan.md', 'secrets/k']),
  )
  await ask({ do: 'move', path: 'src', to: 'lib' })
  expect((await find('domain')).entries[0]?.path).toBe('lib/domain.ts')
})

test('names of any characters are listed, moved and removed', async () => {
  const { ask, workspace } = await open()
  const files = await workspace(ADA.id)
  const names = ['two\nlines', 'rtl\u202egpj.exe', 'n'.repeat(255), ' leading', '…', '-rf']
  for (const name of names) await files.write(name, Buffer.from('x'))
  const { entries } = directoryList.parse(await ask({ do: 'list', path: '' }))
  expect(entries.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
  for (const [n, name] of names.entries()) {
    await ask({ do: 'move', path: name, to: `moved${n}` })
    await ask({ do: 'move', path: `moved${n}`, to: name })
    const { id } = fileRemoved.parse(await ask({ do: 'remove', path: name }))
    expect(fileRestored.parse(await ask({ do: 'restore', id })).path).toBe(name)
  }
  await expect(ask({ do: 'mkdir', path: 'n'.repeat(256) })).rejects.toMatchObject(refused('bad_request'))
})

test('of a file of 10 GB a part is read as of any other', async () => {
  const limits = { ...DEFAULT_LIMITS, diskBytes: 32 * 2 ** 30 }
  const { ask, sandbox } = await open([], { limits })
  const running = await (
    await sandbox()
  ).run({
    id: 'a'.repeat(32),
    command: 'truncate -s 10G big && printf end | dd of=big bs=1 seek=9999999997 conv=notrunc status=none',
    autoAcknowledge: true,
  })
  expect((await running.exit).code).toBe(0)
  const [entry] = directoryList.parse(await ask({ do: 'list', path: '' })).entries
  expect(entry).toMatchObject({ name: 'big', size: 10 * 2 ** 30 })
  const read = async (offset: number) =>
    filePiece.parse(await ask({ do: 'read', path: 'big', offset, length: 3 }))
  expect((await read(0)).data).toBe('AAAA')
  expect(Buffer.from((await read(9_999_999_997)).data, 'base64').toString()).toBe('end')
})

test('a full disk refuses an upload in the middle with a sentence, and nothing of it stays', async () => {
  const limits = { ...DEFAULT_LIMITS, diskBytes: 12 * 1024 * 1024 }
  const { ask, workspace, sandbox } = await open([], { limits })
  const files = await workspace(ADA.id)
  const data = Buffer.alloc(1024 * 1024, 'x').toString('base64')
  const piece = (path: string, n: number, more = true) =>
    ask({ do: 'write', path, data, replace: false, upload: path, offset: n * 1024 * 1024, more })
  for (let n = 0; n < 8; n++) await piece('first', n, n < 7)
  // Over the budget, and below the largest size of one file. Usage is counted after the writing, so the count is awaited.
  const fill = async () => {
    for (let n = 0; n < 5; n++) await piece('big', n)
    const filled = await sandbox()
    await vi.waitFor(async () => expect((await filled.stat()).disk.over).toBe(true), { timeout: 30_000 })
    await piece('big', 5)
  }
  await expect(fill()).rejects.toMatchObject({
    ...refused('too_large'),
    message: '"big" does not fit: the disk quota is used up; delete what is not needed.',
  })
  expect((await files.list('')).map(({ path }) => path)).toEqual(['first'])
  // There is room again, once it is counted.
  let small: unknown
  while (small === undefined) small = await piece('small', 0, false).catch(() => undefined)
  expect(small).toMatchObject({ size: 1024 * 1024 })
})

test('what becomes of a workspace that is stopped under an upload is said, and the next one is whole', async () => {
  const { ask, base64, restart } = await open()
  const piece = (text: string, offset: number, more: boolean) =>
    ask({ do: 'write', path: 'a', data: base64(text), replace: false, upload: 'u1', offset, more })
  await piece('one ', 0, true)
  await restart()
  await expect(piece('two', 4, false)).rejects.toMatchObject({
    data: { code: expect.stringMatching(/not_ready|conflict/) },
  })
  await piece('one ', 0, true)
  expect(await piece('two', 4, false)).toMatchObject({ size: 7 })
  expect(directoryList.parse(await ask({ do: 'list', path: '' })).entries).toMatchObject([{ name: 'a' }])
})

test('names that mean another place elsewhere, or look the same, are opened, moved and removed', async () => {
  const { ask, sandbox } = await open()
  const { files } = await sandbox()
  const [composed, decomposed] = ['\u00E4.txt', 'a\u0308.txt']
  for (const name of ['a\\b.txt', '~$c.docx', '..\\d', decomposed]) {
    const named = name.normalize()
    await files.write(name, Buffer.from('x'))
    expect(filePiece.parse(await ask({ do: 'read', path: named, offset: 0 }))).toMatchObject({ size: 1 })
    await ask({ do: 'move', path: named, to: `moved ${name}` })
    const removed = fileRemoved.parse(await ask({ do: 'remove', path: `moved ${named}`, forever: false }))
    expect(fileRestored.parse(await ask({ do: 'restore', id: removed.id }))).toEqual({
      path: `moved ${name}`,
    })
    await ask({ do: 'remove', path: `moved ${named}`, forever: true })
  }
  await files.mkdir('~')
  await ask({ do: 'remove', path: '~', forever: true })
  await files.write(decomposed, Buffer.from('x'))
  await expect(ask({ do: 'mkdir', path: composed })).rejects.toThrow('already')
  expect(filesFound.parse(await ask({ do: 'search', query: composed, most: 5 })).entries).toHaveLength(1)
  await ask({ do: 'move', path: decomposed, to: composed })
  expect((await files.list('')).map(({ path }) => path)).toContain(composed)
})
