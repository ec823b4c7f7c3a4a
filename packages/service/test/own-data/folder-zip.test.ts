import { mkdir, mkdtemp, open, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { DirectoryList, FilePiece } from '@sandlot/shared/workspace/files'
import { unzipSync } from 'fflate'
import { expect, onTestFinished, test } from 'vitest'
import { safeName, zipFolder } from '../../src/own-data/folder-zip.ts'

type FolderReader = Parameters<typeof zipFolder>[0]

const PIECE = 64 * 1024
const PAGE = 3

/** A real folder, read as the agent reads one: in pages and pieces. */
async function realFolder(): Promise<{ root: string; reader: FolderReader }> {
  const root = await mkdtemp(join(tmpdir(), 'sandlot-zip-'))
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  const reader: FolderReader = {
    async list(path, after = ''): Promise<DirectoryList> {
      const found = (await readdir(join(root, path), { withFileTypes: true }))
        .toSorted((a, b) => (a.name < b.name ? -1 : 1))
        .filter(({ name }) => name > after)
      const entries = found.slice(0, PAGE).map((one) => ({
        name: one.name,
        kind: one.isDirectory() ? 'directory' : one.isSymbolicLink() ? 'symlink' : 'file',
        size: 0,
        modifiedAt: 1,
      })) as DirectoryList['entries']
      return { entries, left: found.length - entries.length }
    },
    async read(path, offset): Promise<FilePiece> {
      const { size, mtimeMs } = await stat(join(root, path)).catch(() => {
        throw new SandlotError('not_found', `"${path}" does not exist.`)
      })
      await using file = await open(join(root, path))
      const { buffer, bytesRead } = await file.read(Buffer.alloc(PIECE), 0, PIECE, offset)
      return { size, modifiedAt: mtimeMs, data: buffer.subarray(0, bytesRead).toString('base64') }
    },
  }
  return { root, reader }
}

async function zipped(
  reader: FolderReader,
  path: string,
  name: string,
  only?: readonly string[],
): Promise<Record<string, Uint8Array>> {
  const body = zipFolder(reader, { path, name, first: await reader.list(path), only }, () => {})
  return unzipSync(new Uint8Array(await new Response(body).arrayBuffer()))
}

const textOf = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString()

test('a folder is there with all that is below it; links, outputs and trash are not', async () => {
  const { root, reader } = await realFolder()
  const large = Buffer.from(Array.from({ length: 400_000 }, (_, n) => (n * n) % 251))
  await mkdir(join(root, 'a/empty'), { recursive: true })
  await mkdir(join(root, '.tool-outputs/.trash'), { recursive: true })
  await writeFile(join(root, '.tool-outputs/.trash/x'), 'x')
  for (let n = 0; n < 7; n++) await writeFile(join(root, `a/f${n}`), `text ${n}`)
  await writeFile(join(root, 'large.bin'), large)
  await writeFile(join(root, 'photo.png'), large)
  await symlink('/etc', join(root, 'a/out'))
  const all = await zipped(reader, '', 'workspace')
  expect(Object.keys(all).toSorted()).toEqual([
    'workspace/_not-in-this-zip.txt',
    'workspace/a/',
    'workspace/a/empty/',
    ...Array.from({ length: 7 }, (_, n) => `workspace/a/f${n}`),
    'workspace/large.bin',
    'workspace/photo.png',
  ])
  expect(textOf(all['workspace/a/f6'])).toBe('text 6')
  expect(Buffer.compare(Buffer.from(all['workspace/large.bin'] ?? []), large)).toBe(0)
  expect(Buffer.compare(Buffer.from(all['workspace/photo.png'] ?? []), large)).toBe(0)
  expect(textOf(all['workspace/_not-in-this-zip.txt'])).toContain('"a/out" is a symbolic link.')
  expect(Object.keys(await zipped(reader, 'a/empty', 'empty'))).toEqual([])
  const some = await zipped(reader, '', 'some', ['a/f1', 'a/empty', 'photo.png'])
  expect(Object.keys(some).toSorted()).toEqual(['some/a/', 'some/a/empty/', 'some/a/f1', 'some/photo.png'])
})

test('no name leads out of where it is unpacked, or takes the place of another', async () => {
  const { root, reader } = await realFolder()
  for (const name of [
    '..\\..\\up',
    'c:evil',
    'two\nlines',
    'two\rlines',
    '\u202egpj.exe',
    'A',
    'a',
    'NUL.txt',
    'dot.',
  ])
    await writeFile(join(root, name), name)
  const names = Object.keys(await zipped(reader, '', 'w')).map((name) => name.slice(2))
  expect(names.toSorted()).toEqual(
    [
      '.._.._up',
      'c_evil',
      'two_lines',
      'two_lines (2)',
      '_gpj.exe',
      'A',
      'a (2)',
      '_NUL.txt',
      'dot_',
    ].toSorted(),
  )
  for (const name of ['../x', '..', '/etc', 'con', '.'])
    expect(safeName(name)).not.toMatch(/^\.*$|[\\/]|^con$/)
})

test('a file that has gone, or became shorter, is told about and holds nothing up', async () => {
  const { root, reader } = await realFolder()
  await writeFile(join(root, 'gone'), 'x')
  await writeFile(join(root, 'shrinks'), Buffer.alloc(200_000, 's'))
  await writeFile(join(root, 'z'), 'last')
  const read = reader.read
  reader.read = async (path, offset) => {
    if (path === 'gone') await rm(join(root, 'gone'), { force: true })
    if (offset > 0) await writeFile(join(root, 'shrinks'), 's')
    return read(path, offset)
  }
  const all = await zipped(reader, '', 'w')
  expect(textOf(all['w/z'])).toBe('last')
  expect(all['w/shrinks']?.length).toBe(PIECE)
  expect(textOf(all['w/_not-in-this-zip.txt'])).toMatch(/"gone".*not exist[^]*"shrinks" became shorter/)
})

test('nothing is read ahead of who takes it, and nothing more when they are gone', async () => {
  const { root, reader } = await realFolder()
  for (let n = 0; n < 200; n++) await writeFile(join(root, `f${n}.zip`), Buffer.alloc(4 * PIECE))
  let reads = 0
  const read = reader.read
  reader.read = (path, offset) => {
    reads += 1
    return read(path, offset)
  }
  const ended = Promise.withResolvers<void>()
  const body = zipFolder(reader, { path: '', name: 'w', first: await reader.list('') }, ended.resolve)
  const taker = body.getReader()
  await taker.read()
  await taker.cancel()
  await ended.promise
  const before = reads
  expect(before).toBeLessThan(50)
  await reader.list('')
  expect(reads).toBe(before)
})

test('an agent that is not there any more breaks the download off', async () => {
  const { root, reader } = await realFolder()
  await writeFile(join(root, 'a'), 'x')
  reader.read = async () => {
    throw new SandlotError('agent_unavailable', 'Gone.')
  }
  await expect(zipped(reader, '', 'w')).rejects.toThrow()
})
