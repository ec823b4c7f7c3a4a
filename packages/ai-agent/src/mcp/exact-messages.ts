/**
 * Numbers with more digits than JavaScript's, on the way to a server and back: the SDK writes and
 * parses messages with `JSON`, which would change them.
 */
import type { FetchLike } from '@modelcontextprotocol/client'
import { mayChange, parseExactly, stringifyExactly, withDigits } from '@sandlot/shared/exact-numbers'
import { isObject } from '../model/json.ts'

/**
 * The text of a message with the exact numbers of its structured content as they are stored; all
 * else is the SDK's to read.
 */
export function withExactContent(text: string): string {
  if (!mayChange(text)) return text
  let exact: unknown
  try {
    exact = parseExactly(text)
    if (stringifyExactly(exact) === JSON.stringify(exact)) return text
  } catch {
    return text // No JSON, or nested too deep: the SDK says so.
  }
  const plain: unknown = JSON.parse(text)
  const batch = Array.isArray(plain) ? plain : [plain]
  const exactBatch = Array.isArray(exact) ? exact : [exact]
  for (const [place, message] of batch.entries()) takeContent(message, exactBatch[place])
  return JSON.stringify(plain)
}

function takeContent(plain: unknown, exact: unknown): void {
  if (!isObject(plain) || !isObject(exact) || !isObject(plain['result']) || !isObject(exact['result'])) return
  if (!('structuredContent' in plain['result'])) return
  plain['result']['structuredContent'] = exact['result']['structuredContent']
}

/** `base` that sends the digits of exact numbers and gives each answer `withExactContent`. */
export function exactFetch(base: FetchLike): FetchLike {
  return async (url, init) => {
    const { body } = init ?? {}
    const sent = typeof body === 'string' ? { ...init, body: withDigits(body) } : init
    const response = await base(url, sent)
    if (!response.ok || response.body === null) return response
    const type = response.headers.get('content-type') ?? ''
    const events = /^\s*text\/event-stream\b/i.test(type)
    if (!events && !/^\s*application\/json\b/i.test(type)) return response
    const { status, statusText, headers } = response
    const read = response.body
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(events ? exactEvents() : exactWhole())
      .pipeThrough(new TextEncoderStream())
    return new Response(read, { status, statusText, headers })
  }
}

function exactWhole(): TransformStream<string, string> {
  const pieces: string[] = []
  return new TransformStream({
    transform: (piece) => void pieces.push(piece),
    flush: (controller) => controller.enqueue(withExactContent(pieces.join(''))),
  })
}

/** Two line ends, of which each may be of three kinds. */
const EVENT_END = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n))/
/** Characters of an end that may be cut between two pieces. */
const END_CHARS = 3

/** Each event by itself, once it is whole. */
function exactEvents(): TransformStream<string, string> {
  let pieces: string[] = []
  let tail = ''
  return new TransformStream({
    transform(piece, controller) {
      pieces.push(piece)
      tail += piece
      if (EVENT_END.test(tail)) {
        const events = pieces.join('').split(EVENT_END)
        tail = events.pop() ?? ''
        pieces = [tail]
        for (const event of events) controller.enqueue(`${exactEvent(event)}\n\n`)
      }
      tail = tail.slice(-END_CHARS)
    },
    flush: (controller) => controller.enqueue(pieces.join('')),
  })
}

function exactEvent(event: string): string {
  const lines = event.split(/\r\n|\n|\r/)
  const data = lines.filter((line) => line.startsWith('data:'))
  const text = data.map((line) => line.slice(line.startsWith('data: ') ? 6 : 5)).join('\n')
  const exact = withExactContent(text)
  if (exact === text) return event
  return [...lines.filter((line) => !data.includes(line)), `data: ${exact}`].join('\n')
}
