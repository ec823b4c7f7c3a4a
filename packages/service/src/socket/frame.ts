/** Reading one WebSocket text message as a chat frame. */
import type { ErrorCode } from '@sandlot/shared/base/errors'
import { clientFrame } from '@sandlot/shared/chat/frames'
import type { ClientFrame, ServerFrame } from '@sandlot/shared/chat/frames'
import { parseStorable } from '@sandlot/shared/base/storable-text'
import type { z } from 'zod'

const TYPES = new Set<string>(clientFrame.options.flatMap((option) => [...option.shape.type.values]))

/** The frame, or the error to answer, with the ids that could be read. */
export function readFrame(text: string): ClientFrame | Extract<ServerFrame, { type: 'ai_chat_error' }> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    const problem = error instanceof SyntaxError ? error.message : 'not readable'
    return refusal(
      {},
      'invalid_frame',
      `A frame is one JSON object in a text message; this is not JSON (${problem.slice(0, 200)}).`,
    )
  }
  const parsed = parseStorable(clientFrame, value)
  if (parsed.success) return parsed.data
  const about: Record<string, unknown> =
    typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
  const { type } = about
  if (typeof type === 'string' && !TYPES.has(type)) {
    const known = [...TYPES].join(', ')
    return refusal(about, 'unknown_frame', `There is no frame “${type.slice(0, 100)}”. There are: ${known}.`)
  }
  return refusal(about, 'invalid_frame', `This frame is malformed: ${problemsOf(parsed.error)}`)
}

/** The first problems of a parse in one sentence. */
export function problemsOf(error: z.ZodError): string {
  const said = error.issues.slice(0, 3).map((issue) => {
    const where = issue.path.join('.')
    return where === '' ? issue.message : `${where}: ${issue.message}`
  })
  return said.join('; ').slice(0, 500)
}

function refusal(
  about: Record<string, unknown>,
  code: ErrorCode,
  message: string,
): Extract<ServerFrame, { type: 'ai_chat_error' }> {
  const { requestId, sessionId } = about
  return {
    type: 'ai_chat_error',
    ...(typeof requestId === 'string' ? { requestId: requestId.slice(0, 128) } : {}),
    ...(typeof sessionId === 'string' ? { sessionId: sessionId.slice(0, 64) } : {}),
    code,
    message,
  }
}
