/**
 * Reads what a server sends before the SDK does, which parses it with `JSON`, so that long numbers
 * change, and refuses a whole result for one odd part. The SDK gets a ticket in place of the result
 * of a call, and `readResult` the result as it came, with every digit.
 */
import type { FetchLike, JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { mayChange, withDigits } from '@sandlot/shared/base/exact-numbers'
import { isObject, member, parseExactJson, textMember } from '../../model/json.ts'

/** A transport that keeps results from the SDK. */
export interface ToolTransport extends Transport {
  readonly rawResults: RawResults
}

const TICKET = 'sandlot/raw'
const INTERNAL_ERROR = -32_603
/** Two line ends, of which each may be of three kinds. */
const EVENT_END = /(?:\r\n|\n|\r(?!\n)){2}/
/** Characters of an end that may be cut between two pieces. */
const END_CHARS = 3

export class RawResults {
  /** Ids of calls without an answer. */
  readonly #calls = new Set<number>()
  readonly #results = new Map<string, unknown>()

  /** To be called with each message before it is sent. */
  sent(message: JSONRPCMessage | JSONRPCMessage[]): void {
    for (const one of [message].flat()) {
      if (!('method' in one)) continue
      if (one.method === 'tools/call' && 'id' in one) this.#calls.add(Number(one.id))
      if (one.method !== 'notifications/cancelled') continue
      const id = Number(one.params?.['requestId'])
      this.#calls.delete(id)
      this.#results.delete(String(id))
    }
  }

  /** The message of this text, or the messages, for the SDK. Throws `SyntaxError`. */
  read(text: string): unknown {
    const plain: unknown = JSON.parse(text)
    if (this.#calls.size === 0) return plain
    const parsed = mayChange(text) ? parseExactJson(text) : undefined
    // Nested too deep: its numbers stay what JavaScript makes of them.
    const exact = parsed?.ok === true ? parsed.value : plain
    if (!Array.isArray(plain)) return this.#ticketed(plain, exact)
    return plain.map((one, place) => this.#ticketed(one, (exact as unknown[])[place]))
  }

  #ticketed(message: unknown, exact: unknown): unknown {
    if (!isObject(message) || 'method' in message) return message
    const id = Number(message['id'])
    if (!this.#calls.delete(id)) return message
    const error = message['error'] ?? undefined
    if (error !== undefined) return { jsonrpc: '2.0', id, error: readError(error) }
    // The answer follows in another result.
    if (member(message['result'], 'resultType') === 'input_required') return message
    const ticket = String(id)
    this.#results.set(ticket, member(exact, 'result'))
    const structuredContent = { [TICKET]: ticket }
    return { jsonrpc: '2.0', id, result: { resultType: 'complete', content: [], structuredContent } }
  }

  /** The result as the server sent it, by what the SDK made of its ticket. */
  take({ structuredContent }: { structuredContent?: unknown }): unknown {
    const ticket = textMember(structuredContent, TICKET) ?? ''
    const result = this.#results.get(ticket)
    this.#results.delete(ticket)
    return result
  }

  /** `base` that sends the digits of exact numbers, and whose answers are `read`. */
  fetch(base: FetchLike): FetchLike {
    return async (url, init) => {
      const sent = typeof init?.body === 'string' ? { ...init, body: withDigits(init.body) } : init
      const response = await base(url, sent)
      const { body, status, statusText, headers } = response
      if (body === null || !response.ok) return response
      if (/^\s*text\/event-stream\b/i.test(headers.get('content-type') ?? '')) {
        const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(this.#events())
        return new Response(events.pipeThrough(new TextEncoderStream()), { status, statusText, headers })
      }
      Object.defineProperty(response, 'json', { value: async () => this.read(await response.text()) })
      return response
    }
  }

  /** Each event by itself, once it is whole. */
  #events(): TransformStream<string, string> {
    /** Pieces of an unfinished event: joined once, however small they are. */
    let pieces: string[] = []
    let tail = ''
    return new TransformStream({
      transform: (piece, controller) => {
        pieces.push(piece)
        tail += piece
        if (EVENT_END.test(tail)) {
          const events = pieces.join('').split(EVENT_END)
          tail = events.pop() ?? ''
          pieces = [tail]
          for (const event of events) controller.enqueue(`${this.#event(event)}\n\n`)
        }
        tail = tail.slice(-END_CHARS)
      },
      // An event without its end counts for nothing; the SDK says so.
      flush: (controller) => controller.enqueue(pieces.join('')),
    })
  }

  #event(event: string): string {
    const lines = event.split(/\r\n|\n|\r/)
    const data = lines.flatMap((line) => /^data: ?(.*)$/s.exec(line)?.[1] ?? []).join('\n')
    try {
      const read = JSON.stringify(this.read(data))
      return [...lines.filter((line) => !line.startsWith('data:')), `data: ${read}`].join('\n')
    } catch {
      return event // No JSON: the SDK says so.
    }
  }
}

/** An error that the SDK does not refuse for its form. */
function readError(error: unknown): object {
  const code = member(error, 'code')
  const message = textMember(error, 'message') ?? (typeof error === 'string' ? error : JSON.stringify(error))
  return {
    ...(isObject(error) ? error : {}),
    code: Number.isSafeInteger(code) ? code : INTERNAL_ERROR,
    message,
  }
}
