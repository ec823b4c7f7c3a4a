/**
 * Server-sent events, as providers really send them: any chunking, comments, `data:` without a
 * space, bare `data`, a BOM, CR, LF or CRLF, several data lines, no blank line at the end, field
 * names in capitals or behind spaces, `error:` as a field, plain JSON, and no blank line between
 * events.
 */
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import { parseJson } from './json.ts'
import { modelError } from './errors.ts'

export interface SilenceLimits {
  /** Milliseconds without any byte. */
  idleMs: number
  /** Milliseconds without data: bytes that only keep the connection alive do not count. */
  progressMs: number
}

/**
 * Reads the bytes of an answer, with a limit on silence. The clock runs only while it waits for the
 * provider, never while the consumer is slow.
 */
export class BodyReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #limits: SilenceLimits
  #withoutData = 0

  constructor(body: ReadableStream<Uint8Array>, limits: SilenceLimits) {
    this.#reader = body.getReader()
    this.#limits = limits
  }

  /** Resets the limit on silence: data has come, not only bytes. */
  progressed(): void {
    this.#withoutData = 0
  }

  /**
   * Resolves with the next bytes, or undefined at the end; `late` after `atMostMs`.
   * Throws `ModelError('timeout')`, or what the connection threw.
   */
  async read(atMostMs = Number.POSITIVE_INFINITY): Promise<Uint8Array | undefined | 'late'> {
    const started = performance.now()
    const { idleMs, progressMs } = this.#limits
    const left = Math.min(idleMs, progressMs - this.#withoutData, atMostMs)
    const result = await orTimeout(this.#reader.read(), Math.max(0, left), 'late')
    this.#withoutData += performance.now() - started
    if (result !== 'late') return result.value
    // The read is abandoned; cancelling the body ends it.
    if (left === atMostMs) return 'late'
    const seconds = Math.round((left === idleMs ? idleMs : progressMs) / 1_000)
    throw modelError(
      'timeout',
      left === idleMs
        ? `The model provider sent nothing for ${seconds} s.`
        : `The model provider sent only signs of life for ${seconds} s, and no answer.`,
    )
  }

  /** Close the connection. Never rejects. */
  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => undefined)
  }
}

export interface SseEvent {
  /** The `event` field, or `error` for llama.cpp's `error:` field. Empty when there was none. */
  event: string
  data: string
  /** False for the last event when no blank line ended it: it may be cut. */
  complete: boolean
}

/**
 * An event or a line that grows beyond the limit. No provider sends that; it is no event stream or
 * an attack.
 */
export class SseTooLargeError extends Error {
  override readonly name = 'SseTooLargeError'
}

/** Default limit of one event, in UTF-16 code units. */
const MAX_EVENT_CHARS = 32 * 1024 * 1024

/** Feed bytes, get events. One parser per stream. */
export class SseParser {
  readonly #limit: number
  // Strips a BOM at the start, keeps the rest of a cut character for the next piece.
  readonly #decoder = new TextDecoder()
  /** Pieces of the line that has not ended yet. */
  #line: string[] = []
  #lineChars = 0
  /** The last piece ended in CR: an LF that comes next belongs to it. */
  #afterCr = false
  #event = ''
  #data: string[] = []
  /** The data is plain JSON without a field name, of which the next lines may be more. */
  #plain = false
  #dataChars = 0

  constructor(limit = MAX_EVENT_CHARS) {
    this.#limit = limit
  }

  /** Throws `SseTooLargeError`. */
  push(bytes: Uint8Array): SseEvent[] {
    return this.#pushText(this.#decoder.decode(bytes, { stream: true }))
  }

  /** The stream has ended: what was still open. */
  end(): SseEvent[] {
    const events = this.#pushText(this.#decoder.decode())
    if (this.#lineChars > 0) this.#endLine(events)
    this.#dispatch(events, false)
    return events
  }

  #pushText(text: string): SseEvent[] {
    const events: SseEvent[] = []
    let from = 0
    if (this.#afterCr && text.startsWith('\n')) from = 1
    if (text !== '') this.#afterCr = false
    for (const match of text.matchAll(/\r\n|\r|\n/g)) {
      if (match.index < from) continue
      this.#keep(text.slice(from, match.index))
      this.#endLine(events)
      from = match.index + match[0].length
    }
    this.#keep(text.slice(from))
    if (text.endsWith('\r')) this.#afterCr = true
    return events
  }

  #keep(piece: string): void {
    if (piece === '') return
    this.#line.push(piece)
    this.#lineChars += piece.length
    if (this.#lineChars + this.#dataChars > this.#limit) {
      throw new SseTooLargeError(`An event of the stream is larger than ${this.#limit} characters.`)
    }
  }

  #endLine(events: SseEvent[]): void {
    const line = this.#line.join('')
    this.#line = []
    this.#lineChars = 0
    if (line === '') return this.#dispatch(events, true)
    if (line.startsWith(':')) return
    // Some proxies drop into plain JSON, mostly to report an error, and print it over several
    // lines.
    if (line.startsWith('{') || line.trim() === '[DONE]') {
      this.#plain = true
      return this.#addData(line, events)
    }
    const colon = line.indexOf(':')
    const field = (colon === -1 ? line : line.slice(0, colon)).trim().toLowerCase()
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    // A proxy that wraps a stream in another one sends `data: data: …`.
    if (field === 'data') this.#addData(value.replace(/^(?:data: ?)+/, ''), events)
    else if (field === 'event') this.#event = value.trim()
    else if (field === 'error') {
      this.#event = 'error'
      this.#addData(value, events)
    } else if (this.#plain && field !== 'id' && field !== 'retry') this.#addData(line, events)
  }

  #addData(value: string, events: SseEvent[]): void {
    // Some leave out the blank line: what follows a whole value is the next event, and must not
    // wait for the end.
    const first = this.#data.length === 1 ? (this.#data[0] ?? '') : ''
    const next = value.startsWith('{') || value.trim() === '[DONE]'
    if (next && first.trimEnd().endsWith('}') && parseJson(first).ok) this.#dispatch(events, true)
    this.#data.push(value)
    this.#dataChars += value.length + 1
  }

  #dispatch(events: SseEvent[], complete: boolean): void {
    const data = this.#data.join('\n')
    const event = this.#event
    this.#data = []
    this.#dataChars = 0
    this.#event = ''
    this.#plain = false
    if (data !== '') events.push({ event, data, complete })
  }
}

/** Longest answer that came as one JSON body, in characters. */
const MAX_JSON_CHARS = 64 * 1024 * 1024
/** Characters of a stream that are stored, in case it is an error text instead of events. */
const MAX_WORDS = 2_000
/** Lines that are part of an event stream: empty ones, comments, fields. */
const OF_STREAM = /^\s*(?:$|:|(?:data|event|id|retry|error)\s*:)/i

/** Distinguishes an event stream from a JSON or HTML body by its first bytes; content types lie. */
export class StartOfBody {
  readonly #decoder = new TextDecoder()
  #kind: 'unknown' | 'stream' | 'body' = 'unknown'
  #held: Uint8Array[] = []
  #text = ''

  get isStream(): boolean {
    return this.#kind === 'stream'
  }

  get isBody(): boolean {
    return this.#kind === 'body'
  }

  /** The whole body, unless it is a stream. */
  get text(): string {
    return this.#text
  }

  /**
   * The error text at the start of a stream: some proxies write one under status 200. Empty: none.
   */
  get errorText(): string {
    const lines = this.#text
      .slice(0, MAX_WORDS)
      .split(/\r\n|\r|\n/)
      .filter((line) => !OF_STREAM.test(line))
    const words = lines.join(' ').trim()
    // A single word may be a truncated field; binary data is no error text.
    return this.isStream && /\s/.test(words) && !words.includes('\ufffd') ? words : ''
  }

  /**
   * Returns the bytes that belong to the event stream; undefined while that is unknown, or for a
   * body.
   */
  push(bytes: Uint8Array): Uint8Array | undefined {
    if (this.#kind === 'stream' && this.#text.length >= MAX_WORDS) return bytes
    const text = this.#decoder.decode(bytes, { stream: true })
    this.#text += text
    if (this.#kind === 'stream') return bytes
    if (this.#text.length > MAX_JSON_CHARS)
      throw modelError('protocol', 'The model provider sent a body without end.')
    if (this.#kind === 'body') return undefined
    this.#held.push(bytes)
    // All that came before it is blank.
    const first = text.trimStart().charAt(0)
    if (first === '') return undefined
    this.#kind = first === '{' || first === '[' || first === '<' ? 'body' : 'stream'
    const held = Buffer.concat(this.#held)
    this.#held = []
    return this.#kind === 'stream' ? held : undefined
  }
}
