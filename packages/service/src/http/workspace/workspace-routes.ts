/** A user's workspace: changes, search and whole folders, passed through to the agent. */
import { randomUUID } from 'node:crypto'
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError, toErrorBody } from '@sandlot/shared/base/errors'
import {
  type DirectoryList,
  type FilePiece,
  type FilesAsk,
  type FileVersion,
  MAX_FOUND,
  directoryList,
  etagOf,
  filePiece,
  fileRemoved,
  fileWritten,
  filesFound,
  versionOf,
} from '@sandlot/shared/workspace/files'
import { agentUserOf } from '../../auth/agent-user.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'
import { safeName, zipFolder } from '../../own-data/folder-zip.ts'
import { dispositionOf, pathOf } from './files-routes.ts'
import { pacedBody, recheckCaller } from '../request.ts'

/** The most uploads of one person under way at once: each holds a piece in memory. */
const MOST_PUTS = 8
const MOST_ZIPS = 2
/** Bytes of an upload in one message to the agent. */
const PIECE_BYTES = 512 * 1024

/** `/api/files` */
export function workspaceHandlers(parts: Parts) {
  const puts = new AtOnce(MOST_PUTS)
  const zips = new AtOnce(MOST_ZIPS)
  return {
    listFiles: async (c) => c.json(await list(parts, c, c.req.query('path') ?? '', c.req.query('after'))),
    removeFile: async (c) => {
      const forever = c.req.query('forever') === 'true'
      return c.json(fileRemoved.parse(await ask(parts, c, { do: 'remove', path: pathOf(c), forever })))
    },
    findFiles: async (c) => {
      const query = c.req.query('q') ?? ''
      if (query.length > 200) throw new SandlotError('bad_request', 'A search has at most 200 characters.')
      const most = Math.min(Math.max(Math.trunc(Number(c.req.query('most') ?? 50)) || 50, 1), MAX_FOUND)
      return c.json(filesFound.parse(await ask(parts, c, { do: 'search', query, most })))
    },
    zipFiles: (c) => zipPaths(parts, zips, c),
    writeFile: (c) => putContent(parts, puts, c),
  } satisfies Partial<Handlers>
}

function ask({ agent }: Parts, c: Ctx, what: FilesAsk): Promise<unknown> {
  return agent.request(EXT.files, { user: agentUserOf(c.var.caller), ask: what })
}

async function list(parts: Parts, c: Ctx, path: string, after?: string): Promise<DirectoryList> {
  return directoryList.parse(await ask(parts, c, { do: 'list', path, after }))
}

async function read(parts: Parts, c: Ctx, path: string, offset: number): Promise<FilePiece> {
  return filePiece.parse(await ask(parts, c, { do: 'read', path, offset }))
}

async function zipPaths(parts: Parts, zips: AtOnce, c: Ctx): Promise<Response> {
  const paths = (c.req.queries('path') ?? ['']).map((one) => one.replaceAll(/^\/+|\/+$/g, ''))
  // For several, the folder above all of them.
  const path = paths.length === 1 ? (paths[0] ?? '') : folderAbove(paths)
  const first = await list(parts, c, path)
  const name = safeName(path.split('/').findLast((part) => part !== '') ?? '') || 'workspace'
  const leave = zips.enter(c.var.caller.account.id)
  const reader = {
    list: (at: string, after?: string) => list(parts, c, at, after),
    read: (at: string, offset: number) => read(parts, c, at, offset),
  }
  const body = zipFolder(reader, { path, name, first, ...(paths.length === 1 ? {} : { only: paths }) }, leave)
  return new Response(body, {
    headers: {
      'content-type': 'application/zip',
      'x-content-type-options': 'nosniff',
      'content-disposition': dispositionOf(`${name}.zip`, '1'),
      'cache-control': 'no-store',
    },
  })
}

async function putContent(parts: Parts, puts: AtOnce, c: Ctx): Promise<Response> {
  const path = pathOf(c)
  const version = expectedVersion(c)
  const leave = puts.enter(c.var.caller.account.id)
  try {
    const replace = c.req.query('replace') === 'true'
    const result = await put(c, { path, replace, version }, pacedBody(c, parts), (what) =>
      ask(parts, c, what),
    )
    if ('conflict' in result) return changedMeanwhile(c, result.conflict)
    if ('written' in result) return c.json(result)
    c.header('etag', etagOf(result))
    return c.body(null, 204)
  } finally {
    leave()
  }
}

/** So much of each person’s at once. */
class AtOnce {
  readonly #most: number
  readonly #under = new Map<string, number>()

  constructor(most: number) {
    this.#most = most
  }

  /** Call what it returns once, at the end. Throws `rate_limited`. */
  enter(userId: string): () => void {
    const now = this.#under.get(userId) ?? 0
    if (now >= this.#most)
      throw new SandlotError(
        'rate_limited',
        'Too many requests at once. Wait for the answers, then continue.',
      )
    this.#under.set(userId, now + 1)
    return () => {
      const left = (this.#under.get(userId) ?? 1) - 1
      if (left === 0) this.#under.delete(userId)
      else this.#under.set(userId, left)
    }
  }
}

interface Put {
  path: string
  replace: boolean
  version: FileVersion | undefined
}

/**
 * The body in pieces, at the pace at which the agent takes them. With `?upload=` it is a part of a
 * file that several requests bring; else nothing stays of a body that breaks off.
 */
async function put(
  c: Ctx,
  file: Put,
  body: ReadableStream<Uint8Array> | undefined,
  ask: (what: FilesAsk) => Promise<unknown>,
) {
  const named = c.req.query('upload')
  const upload = named ?? randomUUID()
  const more = named !== undefined && c.req.query('more') === 'true'
  let offset = named === undefined ? 0 : Number(c.req.query('offset') ?? 0)
  try {
    for await (const { bytes, last } of inPieces(body)) {
      if (last) await recheckCaller(c)
      const data = bytes.toString('base64')
      const what = { do: 'write', ...file, upload, data, offset, more: more || !last } as const
      const result = fileWritten.parse(await ask(what))
      if (last || 'conflict' in result) return result
      offset += bytes.length
    }
  } catch (error) {
    // The client gets the reason, also when this fails.
    if (named === undefined) await ask({ do: 'abort', upload }).catch(() => undefined)
    throw error
  }
  throw new Error('files: a body without a last piece')
}

async function* inPieces(
  body: ReadableStream<Uint8Array> | undefined,
): AsyncGenerator<{ bytes: Buffer; last: boolean }> {
  let held: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    if (size > 0 && size + chunk.length > PIECE_BYTES) {
      yield { bytes: Buffer.concat(held), last: false }
      held = []
      size = 0
    }
    held.push(chunk)
    size += chunk.length
  }
  yield { bytes: Buffer.concat(held), last: true }
}

/** The version in `If-Match`. Throws `bad_request` for one that is not ours. */
function expectedVersion(c: Ctx): FileVersion | undefined {
  const header = c.req.header('if-match')
  if (header === undefined) return undefined
  const version = versionOf(header)
  if (version === undefined)
    throw new SandlotError('bad_request', 'If-Match takes the ETag of the file as it was read.')
  return version
}

function changedMeanwhile(c: Ctx, current: FileVersion | null): Response {
  const words =
    current === null
      ? 'This file was removed or renamed since you opened it.'
      : 'This file was changed since you opened it.'
  return c.json({ ...toErrorBody(new SandlotError('conflict', words), c.var.requestId), current }, 409)
}

function folderAbove(paths: readonly string[]): string {
  const parts = paths.map((path) => path.split('/').slice(0, -1))
  const [first = []] = parts
  const shared = first.findIndex((name, at) => parts.some((other) => other[at] !== name))
  return first.slice(0, shared === -1 ? first.length : shared).join('/')
}
