/** A user's workspace: listing, downloads, uploads, passed through to the agent. */
import { EXT } from '@sandlot/shared/acp-meta'
import { SandlotError } from '@sandlot/shared/errors'
import {
  type FilesAsk,
  type FilePiece,
  MAX_UPLOAD_BYTES,
  directoryList,
  filePiece,
} from '@sandlot/shared/person/files'
import { imageTypeOf } from '@sandlot/shared/images'
import { Hono } from 'hono'
import { agentUserOf } from '../auth/agent-user.ts'
import { bodyLimit } from 'hono/body-limit'
import { InOrder } from '../chat/in-order.ts'
import type { AppEnv, Ctx, Parts } from './context.ts'
import { requireCaller, recheckCaller } from './request.ts'

/** Of one person, under way at once: each is in memory while it is. */
const MOST_PUTS = 8
/** Bytes that decide whether a file is text. */
const LOOKED_AT = 8192

/** `/api/files` */
export function filesRoutes(parts: Parts): Hono<AppEnv> {
  const ask = (c: Ctx, what: FilesAsk): Promise<unknown> => {
    return parts.agent.request(EXT.files, { user: agentUserOf(c.var.caller.account), ask: what })
  }
  const puts = new InOrder(MOST_PUTS)
  return new Hono<AppEnv>()
    .use(requireCaller(parts))
    .get('/', async (c) =>
      c.json(directoryList.parse(await ask(c, { do: 'list', path: c.req.query('path') ?? '' }))),
    )
    .get('/content', async (c) => {
      const path = pathOf(c)
      const piece = async (offset: number): Promise<FilePiece> =>
        filePiece.parse(await ask(c, { do: 'read', path, offset }))
      const first = await piece(0)
      const beginning = Buffer.from(first.data, 'base64')
      const body = c.req.method === 'HEAD' ? null : streamFile(beginning, first, piece)
      return new Response(body, {
        headers: {
          'content-type': typeOf(beginning.subarray(0, LOOKED_AT)),
          'content-length': String(first.size),
          'x-content-type-options': 'nosniff',
          'content-disposition': dispositionOf(path, c.req.query('download')),
          'last-modified': new Date(first.modifiedAt).toUTCString(),
          'cache-control': 'no-store',
        },
      })
    })
    .put(
      '/content',
      bodyLimit({
        maxSize: MAX_UPLOAD_BYTES,
        onError: () => {
          throw new SandlotError('too_large', `A file may have ${MAX_UPLOAD_BYTES / 1024 / 1024} MiB here.`)
        },
      }),
      async (c) => {
        const path = pathOf(c)
        // One after another from the body on: the second of two with one name finds the first.
        await puts.run(c.var.caller.account.id, async () => {
          const data = Buffer.from(await c.req.arrayBuffer()).toString('base64')
          await recheckCaller(c)
          await ask(c, { do: 'write', path, data, replace: c.req.query('replace') === 'true' })
        })
        return c.body(null, 204)
      },
    )
}

/**
 * Read at the client's pace. Ends early when the file changes meanwhile, which the client notices
 * by the length.
 */
function streamFile(
  beginning: Uint8Array,
  { size, modifiedAt }: FilePiece,
  piece: (offset: number) => Promise<FilePiece>,
): ReadableStream<Uint8Array> {
  let next = beginning
  let at = 0
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (at > 0 && at < size) {
        const more = await piece(at)
        if (more.size !== size || more.modifiedAt !== modifiedAt)
          throw new Error('files: the file was changed while it was read')
        next = Buffer.from(more.data, 'base64')
      }
      if (at >= size) return controller.close()
      if (next.length === 0) throw new Error('files: the file ended early')
      at += next.length
      controller.enqueue(next)
    },
  })
}

function pathOf(c: Ctx): string {
  const path = c.req.query('path') ?? ''
  if (path === '') throw new SandlotError('bad_request', 'Say which file: ?path=…')
  return path
}

/** By the bytes and not the name: images and texts are shown, everything else can only be saved. */
function typeOf(beginning: Uint8Array): string {
  const image = imageTypeOf(beginning)
  if (image !== undefined) return image
  return beginning.includes(0) ? 'application/octet-stream' : 'text/plain; charset=utf-8'
}

function dispositionOf(path: string, download: string | undefined): string {
  const kind = download === undefined || download === 'false' || download === '0' ? 'inline' : 'attachment'
  const name = path.slice(path.lastIndexOf('/') + 1)
  const plain = name.replaceAll(/[^A-Za-z0-9_. -]/g, '_')
  // RFC 6266: who does not know the second takes the first.
  return `${kind}; filename="${plain}"; filename*=UTF-8''${encodeURIComponent(name).replaceAll(/['()*]/g, escapeChar)}`
}

const escapeChar = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`
