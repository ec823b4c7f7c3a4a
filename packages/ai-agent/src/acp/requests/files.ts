/**
 * `_sandlot/files`: a person's own workspace, for our own service. The sandbox is what confines the
 * paths.
 */
import { SandboxError } from '@sandlot/sandbox/errors'
import type { SandboxFiles } from '@sandlot/sandbox/files'
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { Rule } from '@sandlot/shared/chat/rules'
import {
  type DirectoryList,
  type FilePiece,
  type FileRemoved,
  type FileVersion,
  type FileWritten,
  MAX_LISTED,
  MAX_PIECE_BYTES,
  type ParsedFilesAsk,
} from '@sandlot/shared/workspace/files'
import { fileProblem } from '../../approval/engine.ts'
import { absolutePath } from '../../approval/files.ts'
import { findStoredPath } from '../../tools/name-forms.ts'
import { statIfExists } from '../../tools/workspace-files.ts'
import { FileSearch } from '../../workspace/search.ts'
import { emptyTrash, listTrash, moveToTrash, purge, restore } from '../../workspace/trash.ts'
import { Uploads } from '../../workspace/uploads.ts'
import type { WorkspaceParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'
import { withSandboxErrors } from '../sandbox-error.ts'

/** Bytes of a file in one answer. Other answers to the same client pass between two of them. */
const PIECE_BYTES = 512 * 1024

export function filesRequests(parts: WorkspaceParts) {
  const uploads = new Uploads()
  const search = new FileSearch()
  return {
    [EXT.files]: async ({ params: { user, ask } }): Promise<object> => {
      const { id } = user
      const { workspace } = parts
      return withSandboxErrors(async () => {
        const files = await workspace(id)
        const rules = await parts.rulesOf(id)
        return answer(ask, { userId: id, files, rules, uploads, search })
      })
    },
  } satisfies Partial<ExtensionHandlers>
}

interface Place {
  userId: string
  files: SandboxFiles
  rules: readonly Rule[]
  uploads: Uploads
  search: FileSearch
}

type AskOf<Do extends ParsedFilesAsk['do']> = Extract<ParsedFilesAsk, { do: Do }>

async function answer(ask: ParsedFilesAsk, place: Place): Promise<object> {
  const { userId, files, uploads, search } = place
  const { withoutLinks } = files
  switch (ask.do) {
    case 'list':
      return list(withoutLinks, { ...ask, path: await pathOf(ask.path, 'read', place) })
    case 'read':
      return read(withoutLinks, await pathOf(ask.path, 'read', place), ask.offset, ask.length)
    case 'search':
      return search.find(userId, files, ask.query, ask.most)
    case 'trash':
      await purge(withoutLinks)
      return listTrash(withoutLinks)
  }
  search.forget(userId)
  switch (ask.do) {
    case 'write':
      return write({ ...ask, path: await pathOf(ask.path, 'write', place) }, place)
    case 'abort':
      await uploads.inOrder(userId, ask.upload, () => uploads.abort(userId, ask.upload))
      return {}
    case 'mkdir':
      await makeDirectory(withoutLinks, await pathOf(ask.path, 'write', place))
      return {}
    case 'move':
      await move(withoutLinks, await entryOf(ask.path, 'move', place), await entryOf(ask.to, 'name', place))
      return {}
    case 'remove':
      return remove(withoutLinks, await entryOf(ask.path, 'delete', place), ask.forever)
    case 'restore':
      return { path: await restore(withoutLinks, ask.id) }
    case 'empty_trash':
      await emptyTrash(withoutLinks)
      return {}
  }
}

/** The target of the path. Throws `forbidden` where that, or the way there, must not be. */
async function pathOf(path: string, access: 'read' | 'write', { files, rules }: Place): Promise<string> {
  const place = await files.resolve(await findStoredPath(files, path))
  checkPath({ path, place, access, kind: access === 'write' ? 'edit' : 'read' }, rules)
  return place
}

/** The same of an entry itself, which may be a symbolic link. `name`: a new one, as written. */
async function entryOf(
  path: string,
  kind: 'move' | 'delete' | 'name',
  { files, rules }: Place,
): Promise<string> {
  const [, parent = '', name = ''] = /^(.*?\/)?([^/]*)\/*$/s.exec(path) ?? []
  if (name === '' || name === '.' || name === '..')
    throw new SandlotError('bad_request', 'The workspace itself stays where it is.')
  const above = await files.resolve(await findStoredPath(files, parent))
  const written = above === '' ? name : `${above}/${name}`
  const place = kind === 'name' ? written : await findStoredPath(files, written)
  checkPath({ path, place, access: 'write', kind: kind === 'delete' ? kind : 'move' }, rules)
  return place
}

interface CheckedPath {
  path: string
  /** The same without a symbolic link on the way. */
  place: string
  access: 'read' | 'write'
  kind: 'read' | 'edit' | 'move' | 'delete'
}

function checkPath({ path, place, access, kind }: CheckedPath, rules: readonly Rule[]): void {
  const leadsTo = { path: place, linked: absolutePath(path) !== absolutePath(place) }
  const asks = [{ kind: 'file', access, path, leadsTo }] as const
  const problem = fileProblem({ tool: 'files', kind, readOnly: access === 'read', asks }, rules)
  if (problem !== undefined) throw new SandlotError('forbidden', `${problem}.`)
}

async function list(files: SandboxFiles, { path, after = '' }: AskOf<'list'>): Promise<DirectoryList> {
  const all = (await files.list(path)).map(({ path: whole, kind, size, modifiedAt }) => ({
    name: whole.slice(whole.lastIndexOf('/') + 1),
    kind,
    size,
    modifiedAt,
  }))
  const first = after === '' ? 0 : all.findIndex(({ name }) => name > after)
  const rest = first < 0 ? [] : all.slice(first)
  const entries = rest.slice(0, MAX_LISTED)
  return { entries, left: rest.length - entries.length }
}

/** A file's version is read before its bytes, so that a reader of several pieces sees a change. */
async function read(
  files: SandboxFiles,
  path: string,
  offset: number,
  length = PIECE_BYTES,
): Promise<FilePiece> {
  const { size, modifiedAt } = await files.stat(path)
  const bytes = await files.read(path, { offset, length: Math.min(length, PIECE_BYTES) })
  return { size, modifiedAt, data: Buffer.from(bytes).toString('base64') }
}

/** The file is not the version that its writer has read. */
class FileConflict extends Error {
  readonly version: FileVersion | null

  constructor(version: FileVersion | null) {
    super('The file was changed meanwhile.')
    this.version = version
  }
}

async function write(ask: AskOf<'write'>, { userId, files, uploads }: Place): Promise<FileWritten> {
  const { path, replace, version, upload, offset, more } = ask
  const data = Buffer.from(ask.data, 'base64')
  if (data.length > MAX_PIECE_BYTES)
    throw new SandlotError('too_large', `A piece of a file may have ${MAX_PIECE_BYTES} bytes.`)
  const isNew = !replace && version === undefined
  const begin = () => files.withoutLinks.writer(path, { isNew })
  const check = () => checkVersion(files.withoutLinks, path, version)
  try {
    // Before bytes are sent in vain; a change in between is found at the end.
    if (offset === 0 && isNew && (await statIfExists(files, path)) !== undefined) throw taken(path)
    if (offset === 0) await check()
    if (upload === undefined) {
      if (more || offset > 0) throw new SandlotError('bad_request', 'Pieces need an upload that they are of.')
      await begin().commit(data)
    } else {
      const piece = { userId, upload, path, offset, data }
      const written = await uploads.inOrder(userId, upload, () => uploads.take(piece, begin))
      if (more) return { written }
      await uploads.inOrder(userId, upload, () => uploads.commit(userId, upload, check))
    }
  } catch (error) {
    if (error instanceof FileConflict) return { conflict: error.version }
    if (error instanceof SandboxError && error.code === 'exists') throw taken(path, error)
    throw error
  }
  const { size, modifiedAt } = await files.withoutLinks.stat(path)
  return { size, modifiedAt }
}

/** Throws `FileConflict`. */
async function checkVersion(
  files: SandboxFiles,
  path: string,
  version: FileVersion | undefined,
): Promise<void> {
  if (version === undefined) return
  const now = await statIfExists(files, path)
  if (now === undefined) throw new FileConflict(null)
  if (now.size !== version.size || now.modifiedAt !== version.modifiedAt)
    throw new FileConflict({ size: now.size, modifiedAt: now.modifiedAt })
}

async function makeDirectory(files: SandboxFiles, path: string): Promise<void> {
  if ((await statIfExists(files, path)) !== undefined) throw taken(path)
  await files.mkdir(path)
}

async function move(files: SandboxFiles, path: string, to: string): Promise<void> {
  if (`${to}/`.startsWith(`${path}/`) && to !== path)
    throw new SandlotError('bad_request', `“${path}” cannot be moved into itself.`)
  try {
    await files.rename(path, to, { isNew: true })
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'exists') throw taken(to, error)
    throw error
  }
}

async function remove(files: SandboxFiles, path: string, forever: boolean): Promise<FileRemoved> {
  if (!forever) return { id: await moveToTrash(files, path) }
  await files.remove(path, { recursive: true })
  return { id: null }
}

function taken(path: string, cause?: unknown): SandlotError {
  return new SandlotError('conflict', `There is something called “${path}” already.`, { cause })
}
