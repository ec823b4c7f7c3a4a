/**
 * `_sandlot/files`: a person's own workspace, for our own service. The sandbox is what confines the
 * paths.
 */
import type { SandboxFiles } from '@sandlot/sandbox/sandbox'
import { EXT } from '@sandlot/shared/acp-meta'
import { SandlotError } from '@sandlot/shared/errors'
import type { Rule } from '@sandlot/shared/rules'
import {
  type DirectoryList,
  type FilePiece,
  type FilesAsk,
  MAX_LISTED,
  MAX_UPLOAD_BYTES,
  filesParams,
} from '@sandlot/shared/person/files'
import { fileProblem } from '../../approval/engine.ts'
import { absolutePath } from '../../approval/files.ts'
import { statIfExists } from '../../tools/workspace-files.ts'
import { parseParams } from '../errors.ts'
import type { AcpServerParts, ExtensionHandlers } from '../handler-context.ts'
import { withSandboxErrors } from '../sandbox-error.ts'

const GUEST_HAS_NO_FILES = 'Guests have no files of their own.'
/** Bytes of a file in one answer. Other answers to the same client pass between two of them. */
const PIECE_BYTES = 512 * 1024

export function filesRequests(parts: AcpServerParts): ExtensionHandlers {
  return {
    [EXT.files]: async ({ params, connection }): Promise<DirectoryList | FilePiece | object> => {
      const { user, ask } = parseParams(filesParams, params, EXT.files)
      // A foreign client is the local user, whatever it says.
      const { id, role } = connection.ours ? user : connection.user({})
      if (role === 'guest') throw new SandlotError('forbidden', GUEST_HAS_NO_FILES)
      const { workspace } = parts
      if (workspace === undefined) throw new SandlotError('not_implemented', 'This agent has no workspaces.')
      return withSandboxErrors(async () => {
        const files = await workspace(id)
        return answer(await placeOf(ask, files, (await parts.rulesOf?.(id)) ?? []), files.withoutLinks)
      })
    },
  }
}

/** Where the path leads. Throws `forbidden` where that, or the way there, must not be. */
async function placeOf<Ask extends FilesAsk>(
  ask: Ask,
  files: SandboxFiles,
  rules: readonly Rule[],
): Promise<Ask> {
  const path = await files.resolve(ask.path)
  const leadsTo = { path, linked: absolutePath(ask.path) !== absolutePath(path) }
  const access = ask.do === 'write' ? 'write' : 'read'
  const asks = [{ kind: 'file', access, path: ask.path, leadsTo }] as const
  const kind = access === 'write' ? 'edit' : 'read'
  const problem = fileProblem({ tool: 'files', kind, readOnly: access === 'read', asks }, rules)
  if (problem !== undefined) throw new SandlotError('forbidden', `${problem}.`)
  return { ...ask, path }
}

function answer(ask: FilesAsk, files: SandboxFiles): Promise<DirectoryList | FilePiece | object> {
  switch (ask.do) {
    case 'list':
      return list(files, ask.path)
    case 'read':
      return read(files, ask.path, ask.offset, ask.length)
    case 'write':
      return write(files, ask)
  }
}

async function list(files: SandboxFiles, path: string): Promise<DirectoryList> {
  const all = await files.list(path)
  const entries = all.slice(0, MAX_LISTED).map(({ path: whole, kind, size, modifiedAt }) => ({
    name: whole.slice(whole.lastIndexOf('/') + 1),
    kind,
    size,
    modifiedAt,
  }))
  return { entries, left: all.length - entries.length }
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

async function write(
  files: SandboxFiles,
  { path, data, replace }: Extract<FilesAsk, { do: 'write' }>,
): Promise<object> {
  const bytes = Buffer.from(data, 'base64')
  if (bytes.length > MAX_UPLOAD_BYTES)
    throw new SandlotError('too_large', `A file may have ${MAX_UPLOAD_BYTES} bytes here.`)
  if (!replace && (await statIfExists(files, path)) !== undefined)
    throw new SandlotError('conflict', `There is something called “${path}” already.`)
  await files.write(path, bytes)
  return {}
}
