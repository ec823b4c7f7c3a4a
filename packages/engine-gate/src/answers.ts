import type { IncomingMessage, ServerResponse } from 'node:http'

import type { Audit } from './audit.ts'
import { Refusal } from './refusal.ts'

/** Logs a failure. Returns its status and message. */
export function note(
  audit: Audit,
  request: IncomingMessage,
  error: unknown,
): { status: number; message: string } {
  const refusal = error instanceof Refusal ? error : undefined
  const status = refusal?.status ?? 502
  const message = refusal?.message ?? 'engine-gate: it could not understand the engine’s answer'
  const reason = refusal?.message ?? (error instanceof Error ? error.message : String(error))
  const path = (request.url ?? '').split('?')[0]?.slice(0, 200)
  // 404 is the usual answer to a check for existence.
  if (status !== 404) audit.warn({ method: request.method, path, status, reason }, 'refused')
  return { status, message }
}

/** Answers with serialized JSON. */
export function answerJson(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
  })
  response.end(text)
}

/** A whole answer for a bare socket, to be closed afterwards. */
export function plainAnswer(status: number, message: string): string {
  const text = JSON.stringify({ message })
  const head = [
    `HTTP/1.1 ${status} ${status === 400 ? 'Bad Request' : 'Refused'}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Connection: close',
  ]
  return `${head.join('\r\n')}\r\n\r\n${text}`
}
