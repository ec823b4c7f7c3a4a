/**
 * The text of one message → the message, or the error that answers it. Nothing of a bad message is
 * repeated.
 */
import type { AnyMessage } from '@agentclientprotocol/sdk'
import { Buffer } from 'node:buffer'

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

// ── Lines ───────────────────────────────────────────────────────────────────────────────────────

/** In place of a line that was longer than the limit. The lines behind it come as ever. */
export const TOO_LONG = Symbol('a line that is too long')

const NEWLINE = 10

export class LineSplitter {
  readonly #maxBytes: number
  /** What there is of the current line, undefined when it is too long already. */
  #pieces: Uint8Array[] | undefined = []
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The lines that `chunk` ends, without their ends. */
  *push(chunk: Uint8Array): Generator<string | typeof TOO_LONG, void> {
    let from = 0
    for (;;) {
      const end = chunk.indexOf(NEWLINE, from)
      this.#add(chunk.subarray(from, end === -1 ? chunk.length : end))
      if (end === -1) return
      yield this.#take()
      from = end + 1
    }
  }

  /** What stands behind the last end of a line, if anything does. */
  rest(): string | typeof TOO_LONG | undefined {
    return this.#pieces === undefined || this.#bytes > 0 ? this.#take() : undefined
  }

  #add(piece: Uint8Array): void {
    this.#bytes += piece.length
    if (this.#bytes > this.#maxBytes) this.#pieces = undefined
    else if (piece.length > 0) this.#pieces?.push(piece)
  }

  #take(): string | typeof TOO_LONG {
    const line = this.#pieces === undefined ? TOO_LONG : Buffer.concat(this.#pieces).toString('utf8')
    this.#pieces = []
    this.#bytes = 0
    return line
  }
}
