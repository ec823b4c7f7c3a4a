/** `fetch` that reads no more than it was told to, whoever answers. */
import type { FetchLike } from '@modelcontextprotocol/client'

/** The answer was longer than allowed, or an event of it was. */
export class AnswerTooLong extends Error {
  override readonly name = 'AnswerTooLong'
  constructor(maxBytes: number) {
    super(`it sent a message of more than ${maxBytes} bytes`)
  }
}

/** `maxBytes`: of a whole answer, or of one event of a stream of events. `told` hears of an answer that was cut off. */
export function boundedFetch(
  maxBytes: number,
  told: (error: AnswerTooLong) => void,
  base: FetchLike = fetch,
): FetchLike {
  return async (url, init) => {
    const response = await base(url, init)
    if (response.body === null) return response
    const events = response.headers.get('content-type')?.includes('text/event-stream') === true
    const bounded = response.body.pipeThrough(counted(maxBytes, events, told))
    const { status, statusText, headers } = response
    return new Response(bounded, { status, statusText, headers })
  }
}

const NEWLINE = 10
const RETURN = 13

function counted(
  maxBytes: number,
  events: boolean,
  told: (error: AnswerTooLong) => void,
): TransformStream<Uint8Array, Uint8Array> {
  let count = 0
  let lineIsEmpty = true
  return new TransformStream({
    transform(chunk, controller) {
      if (events) {
        // An empty line ends an event. Counted per byte, because it may be cut anywhere.
        for (const byte of chunk) {
          count++
          if (byte === NEWLINE) {
            if (lineIsEmpty) count = 0
            lineIsEmpty = true
          } else if (byte !== RETURN) lineIsEmpty = false
          if (count > maxBytes) break
        }
      } else count += chunk.length
      if (count > maxBytes) {
        const error = new AnswerTooLong(maxBytes)
        told(error)
        throw error
      }
      controller.enqueue(chunk)
    },
  })
}
