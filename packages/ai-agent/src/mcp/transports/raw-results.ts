/**
 * Takes the results of tool calls out of the messages of a server before the SDK parses them: it
 * refuses a whole result for one odd part. `readResult` reads them instead.
 */
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { isObject } from '../../model/json.ts'

/** A transport that keeps results from the SDK. */
export interface ToolTransport extends Transport {
  readonly rawResults: RawResults
}

const TICKET = 'sandlot/raw'
/** The end of one event of a stream. */
const EVENT_END = /\r\n\r\n|\n\n|\r\r/
const LINE_END = /\r\n|\n|\r/

export class RawResults {
  /** Ids of calls without an answer. */
  readonly #calls = new Set<number>()
  readonly #results = new Map<string, unknown>()

  /** To be called with each message before it is sent. */
  sent(message: JSONRPCMessage | JSONRPCMessage[]): void {
    for (const one of Array.isArray(message) ? message : [message]) {
      if (!('method' in one)) continue
      if (one.method === 'tools/call' && 'id' in one) this.#calls.add(Number(one.id))
      if (one.method === 'notifications/cancelled') this.#calls.delete(Number(one.params?.['requestId']))
    }
  }

  /** The message, or in place of one with the result of a call another with a ticket for `take`. */
  ticketed(message: unknown): unknown {
    if (Array.isArray(message)) return message.map((one) => this.ticketed(one))
    if (!isObject(message) || !('result' in message) || (message['error'] ?? null) !== null) return message
    const { id, result } = message
    if (!this.#calls.delete(Number(id))) return message
    // The answer follows in another result.
    if (isObject(result) && result['resultType'] === 'input_required') return message
    const ticket = String(id)
    this.#results.set(ticket, result)
    const structuredContent = { [TICKET]: ticket }
    return { jsonrpc: '2.0', id, result: { resultType: 'complete', content: [], structuredContent } }
  }

  /** The result as the server sent it, by what the SDK made of its ticket. */
  take({ structuredContent }: { structuredContent?: unknown }): unknown {
    const ticket = isObject(structuredContent) ? String(structuredContent[TICKET]) : ''
    const result = this.#results.get(ticket)
    this.#results.delete(ticket)
    return result
  }

  /** The response with its messages `ticketed`. */
  ofResponse(response: Response): Response {
    const { body, status, statusText, headers } = response
    if (body === null || !response.ok) return response
    const type = headers.get('content-type') ?? ''
    if (type.includes('text/event-stream'))
      return new Response(body.pipeThrough(this.#events()), { status, statusText, headers })
    if (type.includes('json')) {
      const json = response.json.bind(response)
      Object.defineProperty(response, 'json', { value: async () => this.ticketed(await json()) })
    }
    return response
  }

  #events(): TransformStream<Uint8Array, Uint8Array> {
    const decoder = new TextDecoder()
    const encoder = new TextEncoder()
    /** Of an event that has begun: joined once, however small its pieces are. */
    let pieces: string[] = []
    let last = ''
    return new TransformStream({
      transform: (bytes, controller) => {
        const piece = decoder.decode(bytes, { stream: true })
        pieces.push(piece)
        const seen = last.slice(-3) + piece
        last = seen
        if (!EVENT_END.test(seen)) return
        const events = pieces.join('').split(/(?<=\r\n\r\n|\n\n|\r\r)/)
        last = EVENT_END.test(events.at(-1)?.slice(-4) ?? '') ? '' : (events.pop() ?? '')
        pieces = [last]
        for (const event of events) controller.enqueue(encoder.encode(this.#event(event)))
      },
      // An event without its end counts for nothing; the SDK says so.
      flush: (controller) => controller.enqueue(encoder.encode(pieces.join(''))),
    })
  }

  /** One event with its end. */
  #event(event: string): string {
    if (!event.includes('"result"')) return event
    const lines = event.split(LINE_END)
    const data = lines.flatMap((line) => /^data: ?(.*)$/s.exec(line)?.[1] ?? []).join('\n')
    let message: unknown
    try {
      message = JSON.parse(data)
    } catch {
      return event
    }
    const ticketed = this.ticketed(message)
    if (ticketed === message) return event
    const others = lines.filter((line) => line !== '' && !line.startsWith('data:'))
    return [...others, `data: ${JSON.stringify(ticketed)}`, '', ''].join('\n')
  }
}
