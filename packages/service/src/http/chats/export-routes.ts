/** `GET /api/sessions/:id/export?format=`: for everybody who sees the chat. */
import { SandlotError } from '@sandlot/shared/base/errors'
import { authorsOf } from '../../auth/agent-user.ts'
import { EXPORT_FORMATS, type ExportFormat, exportChat, exportName } from '../../chat/chat-export.ts'
import type { Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

export function exportHandlers(parts: Parts) {
  const { accounts, sessions } = parts
  return {
    exportChat: async (c) => {
      const format = c.req.query('format') ?? 'markdown'
      if (!isFormat(format))
        throw new SandlotError('bad_request', `format is one of ${Object.keys(EXPORT_FORMATS).join(', ')}.`)
      const { row } = await sessions.get(c.var.caller.account, c.req.param('id'))
      const authors = await authorsOf(accounts)
      const owner = authors.get(row.userId)?.name ?? 'A person'
      const document = exportChat(
        (await sessions.reader()).log,
        row,
        format,
        (author) => author?.name ?? owner,
      )
      const name = exportName(row.title, format)
      return c.body(streamOf(document), 200, {
        'content-type': EXPORT_FORMATS[format].type,
        'content-disposition': `attachment; filename="chat.${EXPORT_FORMATS[format].ending}"; filename*=UTF-8''${encodeURIComponent(name)}`,
      })
    },
  } satisfies Partial<Handlers>
}

function isFormat(format: string): format is ExportFormat {
  return Object.hasOwn(EXPORT_FORMATS, format)
}

/** At the reader's pace; one who goes away ends the reading. */
function streamOf(document: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await document.next()
      if (done === true) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
    async cancel() {
      await document.return(undefined)
    },
  })
}
