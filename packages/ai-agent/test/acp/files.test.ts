import { EXT } from '@sandlot/shared/acp-meta'
import { MAX_LISTED, MAX_UPLOAD_BYTES, directoryList, filePiece } from '@sandlot/shared/person/files'
import type { Rule } from '@sandlot/shared/rules'
import { expect, onTestFinished, test } from 'vitest'
import { AgentBench } from '../support/agent-fixture.ts'
import { openLocalSandboxes } from '../tools/local-sandboxes.ts'
import { ADA, BOB, connect } from './test-client.ts'

async function open(rules: readonly Rule[] = []) {
  const bench = await AgentBench.start()
  const local = await openLocalSandboxes()
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
  return { ask, workspace, sandbox, base64: (text: string) => Buffer.from(text).toString('base64') }
}

test('a file is put there, listed and read in pieces; another person has none of it', async () => {
  const { ask, base64, workspace } = await open()
  const long = `${'a line of text\n'.repeat(60_000)}the end`
  expect(await ask({ do: 'write', path: 'data/long.txt', data: base64(long), replace: false })).toEqual({})
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
    { do: 'write', path: 'x', data: 'AAAA'.repeat(MAX_UPLOAD_BYTES / 3 + 1) },
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
})

test('an agent without sandboxes says so', async () => {
  await using bench = await AgentBench.start()
  await using one = await connect(await bench.core())
  await expect(one.request(EXT.files, { user: ADA, ask: { do: 'list', path: '' } })).rejects.toMatchObject({
    data: { code: 'not_implemented' },
  })
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
