/** The files of a user's workspace, read through the agent. */
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError, toErrorBody } from '@sandlot/shared/base/errors'
import { fileTypeOf, isDocument, LOOKED_AT } from '@sandlot/shared/workspace/file-type'
import {
  type FilesAsk,
  type FilePiece,
  MAX_SHOWN_PAGE_BYTES,
  etagOf,
  filePiece,
} from '@sandlot/shared/workspace/files'
import { agentUserOf } from '../../auth/agent-user.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'
import { type ByteRange, readRange } from './range.ts'

/** `/api/files` */
export function filesHandlers(parts: Parts): Pick<Handlers, 'readFile' | 'previewFile'> {
  const ask = (c: Ctx, what: FilesAsk): Promise<unknown> => {
    return parts.agent.request(EXT.files, { user: agentUserOf(c.var.caller), ask: what })
  }
  const pieces =
    (c: Ctx, path: string) =>
    async (offset: number, length?: number): Promise<FilePiece> =>
      filePiece.parse(await ask(c, { do: 'read', path, offset, length }))
  return {
    readFile: (c) => {
      const path = pathOf(c)
      return sendContent(c, path, pieces(c, path))
    },
    previewFile: async (c) => {
      // In its own tab it could lead its reader anywhere, which our page prevents for a frame.
      const place = c.req.header('sec-fetch-dest')
      if (place !== undefined && place !== 'iframe')
        throw new SandlotError('forbidden', 'A preview is shown within Sandlot only.')
      const path = pathOf(c)
      const piece = pieces(c, path)
      const first = await piece(0)
      if (first.size > MAX_SHOWN_PAGE_BYTES)
        throw new SandlotError(
          'too_large',
          `This page is too large to show here (at most ${MAX_SHOWN_PAGE_BYTES / 1024 / 1024} MiB). Download it.`,
        )
      const beginning = Buffer.from(first.data, 'base64')
      return new Response(streamFile(beginning, first, { from: 0, to: first.size }, piece), {
        headers: {
          'content-type': 'text/html; charset=utf-8',
          'content-length': String(first.size),
          'x-content-type-options': 'nosniff',
          'cache-control': 'no-store',
        },
      })
    },
  }
}

type ReadPiece = (offset: number, length?: number) => Promise<FilePiece>

/** The file, or the part of it that `Range` requests. */
async function sendContent(c: Ctx, path: string, piece: ReadPiece): Promise<Response> {
  const header = c.req.header('range')
  // Elsewhere than at the beginning the file is read, and here only looked at.
  const [fromStart, last] = /^bytes=0-(\d*)$/.exec(header ?? 'bytes=0-') ?? []
  const most = fromStart === undefined ? 0 : Number(last || Infinity) + 1
  const first = await piece(0, Number.isFinite(most) ? Math.max(most, LOOKED_AT) : undefined)
  const { size } = first
  const beginning = Buffer.from(first.data, 'base64')
  const type = fileTypeOf(beginning)
  // Drawing it may take hours: the page reads a drawing first, and shows it itself.
  if (type === 'image/svg+xml' && c.req.header('sec-fetch-dest') === 'image')
    throw new SandlotError('bad_request', 'A drawing is not given to an <img>.')
  const shown = dispositionOf(path, isDocument(type) ? '1' : c.req.query('download'))
  const headers: Record<string, string> = {
    'content-type': type,
    'x-content-type-options': 'nosniff',
    'content-disposition': shown,
    'last-modified': new Date(first.modifiedAt).toUTCString(),
    etag: etagOf(first),
    'accept-ranges': 'bytes',
    'cache-control': 'no-store',
  }
  const range = readRange(header, size)
  if (range === 'none') {
    const problem = new SandlotError('bad_request', `There are only ${size} bytes.`)
    return c.json(toErrorBody(problem, c.var.requestId), 416, { 'content-range': `bytes */${size}` })
  }
  const wanted = range === 'all' ? { from: 0, to: size } : range
  headers['content-length'] = String(wanted.to - wanted.from)
  if (range !== 'all') headers['content-range'] = `bytes ${wanted.from}-${wanted.to - 1}/${size}`
  const body = c.req.method === 'HEAD' ? null : streamFile(beginning, first, wanted, piece)
  return new Response(body, { status: range === 'all' ? 200 : 206, headers })
}

/**
 * Read at the client's pace. Ends early when the file changes in between, which the client notices
 * by the length.
 */
function streamFile(
  beginning: Uint8Array,
  { size, modifiedAt }: FilePiece,
  { from, to }: ByteRange,
  piece: (offset: number, length: number) => Promise<FilePiece>,
): ReadableStream<Uint8Array> {
  let at = from
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (at >= to) return controller.close()
      let next = beginning.subarray(at, to)
      if (at >= beginning.length) {
        const more = await piece(at, to - at)
        if (more.size !== size || more.modifiedAt !== modifiedAt)
          throw new Error('files: the file was changed while it was read')
        next = Buffer.from(more.data, 'base64').subarray(0, to - at)
      }
      if (next.length === 0) throw new Error('files: the file ended early')
      at += next.length
      controller.enqueue(next)
    },
  })
}

export function pathOf(c: Ctx): string {
  const path = c.req.query('path') ?? ''
  if (path === '') throw new SandlotError('bad_request', 'Say which file: ?path=…')
  return path
}

export function dispositionOf(path: string, download: string | undefined): string {
  const kind = download === undefined || download === 'false' || download === '0' ? 'inline' : 'attachment'
  const name = path.slice(path.lastIndexOf('/') + 1)
  const plain = name.replaceAll(/[^A-Za-z0-9_. -]/g, '_')
  // RFC 6266: who does not know the second takes the first.
  return `${kind}; filename="${plain}"; filename*=UTF-8''${encodeURIComponent(name).replaceAll(/['()*]/g, escapeChar)}`
}

const escapeChar = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`
