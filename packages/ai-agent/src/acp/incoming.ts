/**
 * The text of one message → the message, or the error that answers it. Nothing of a bad message is
 * repeated.
 */
import type { AnyMessage } from '@agentclientprotocol/sdk'
import { TOO_LONG } from '@sandlot/shared/node/line-splitter'

/** Bytes of one message. A prompt is far below; the largest thing that a client sends. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024

type Incoming = { message: AnyMessage } | { answer: AnyMessage }

export function readMessage(text: string | typeof TOO_LONG): Incoming {
  if (text === TOO_LONG) return invalid(`A message may have ${MAX_MESSAGE_BYTES} bytes; this one has more.`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { answer: errorWithoutId(-32_700, 'This message is not JSON.') }
  }
  if (Array.isArray(value)) return invalid('Batches are not supported: one message at a time.')
  if (!isMessage(value)) return invalid('This is no JSON-RPC 2.0 message.')
  return { message: value }
}

function isMessage(value: unknown): value is AnyMessage {
  if (typeof value !== 'object' || value === null) return false
  if (!('jsonrpc' in value) || value.jsonrpc !== '2.0') return false
  if ('method' in value) return typeof value.method === 'string' && (!('id' in value) || isId(value.id))
  return 'id' in value && isId(value.id) && ('result' in value || 'error' in value)
}

function isId(id: unknown): boolean {
  return id === null || typeof id === 'string' || Number.isFinite(id)
}

function invalid(message: string): Incoming {
  return { answer: errorWithoutId(-32_600, message) }
}

function errorWithoutId(code: number, message: string): AnyMessage {
  return { jsonrpc: '2.0', id: null, error: { code, message } }
}
