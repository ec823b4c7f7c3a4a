/** The stored output of a call, in the pieces that the client asks for and as it takes them. */
import { isReplayId } from '@sandlot/shared/chat/event-meta'
import { SandlotError, toErrorBody } from '@sandlot/shared/base/errors'
import type { SessionReader } from '@sandlot/storage/sessions/store'
import type { Ctx } from '../context.ts'
import { type ByteRange, readRange } from '../workspace/range.ts'

/** Bytes read from the database at a time. */
const PIECE_BYTES = 256 * 1024

/** To be called once it is checked that the caller may read it. Throws `not_found`. */
export async function sendOutput(
  c: Ctx,
  reader: SessionReader,
  sessionId: string,
  callId: string,
): Promise<Response> {
  const output = isReplayId(callId) ? undefined : await reader.outputs.get(sessionId, callId)
  if (output === undefined) throw new SandlotError('not_found', 'This call has no stored output.')
  if (output.removed === true)
    throw new SandlotError(
      'not_found',
      'This output was removed because it was older than outputs are stored here. What the model was shown stays in the chat.',
    )
  const size = output.storedBytes
  const range = readRange(c.req.header('range'), size)
  const download = c.req.query('download')
  const headers: Record<string, string> = {
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
    'content-disposition': dispositionOf(
      callId,
      download !== undefined && download !== '0' && download !== 'false',
    ),
    'accept-ranges': 'bytes',
    'cache-control': output.complete ? 'private, max-age=3600' : 'no-store',
    'x-output-total-bytes': String(output.totalBytes),
    'x-output-complete': String(output.complete),
  }
  if (range === 'none') {
    const problem = new SandlotError('bad_request', `There are only ${size} bytes.`)
    return c.json(toErrorBody(problem, c.var.requestId), 416, { 'content-range': `bytes */${size}` })
  }
  const wanted = range === 'all' ? { from: 0, to: size } : range
  headers['content-length'] = String(wanted.to - wanted.from)
  if (range !== 'all') headers['content-range'] = `bytes ${wanted.from}-${wanted.to - 1}/${size}`
  const body = c.req.method === 'HEAD' ? null : streamOutput(reader, sessionId, callId, wanted)
  return new Response(body, { status: range === 'all' ? 200 : 206, headers })
}

/** Read as the client takes it. */
function streamOutput(
  reader: SessionReader,
  sessionId: string,
  callId: string,
  { from, to }: ByteRange,
): ReadableStream<Uint8Array> {
  let at = from
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (at >= to) {
        controller.close()
        return
      }
      const piece = await reader.outputs.read(sessionId, callId, at, Math.min(at + PIECE_BYTES, to))
      // Deleted in between: the promised length cannot be met, and the client must notice.
      if (piece.length === 0) throw new Error('sessions: the output ended early')
      at += piece.length
      controller.enqueue(piece)
    },
  })
}

function dispositionOf(callId: string, download: boolean): string {
  const name = callId.replaceAll(/[^A-Za-z0-9_.-]/g, '_').slice(0, 100)
  return `${download ? 'attachment' : 'inline'}; filename="${name}.txt"`
}
