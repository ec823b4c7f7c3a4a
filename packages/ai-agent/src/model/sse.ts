/**
 * Server-sent events, as providers really send them: any chunking, comments, `data:` without a
 * space, bare `data`, a BOM, CR, LF or CRLF, several data lines, no blank line at the end, field
 * names in capitals or behind spaces, `error:` as a field, plain JSON, and no blank line between
 * events.
 */
import type { ReadBody } from './http-post.ts'
import { parseJson } from './json.ts'
import { modelError } from './errors.ts'

export interface SilenceLimits {
  /** Milliseconds without any byte. */
  idleMs: number
  /** Milliseconds without data: bytes that only keep the connection alive do not count. */
  progressMs: number
}

/**
 * Reads the bytes of an answer, with limits on silence. It has one timer, which looks at what has
 * come since it was set.
 */
export class BodyReader {
  readonly #body: ReadBody
  readonly #connection: AbortController
  readonly #limits: SilenceLimits
  #timer: NodeJS.Timeout | undefined
  #bytesAt = 0
  #dataAt = 0
  #endMs = Number.POSITIVE_INFINITY
  #over = false

  /** `connection`: aborting it ends the body. */
  constructor(body: ReadBody, connection: AbortController, limits: SilenceLimits) {
    this.#body = body
    this.#connection = connection
    this.#limits = limits
  }

  /** Resets the limit on silence: data has come, not only bytes. */
  progressed(): void {
    this.#dataAt = this.#bytesAt
  }

  /** From now on silence of `ms` ends the body, and is no failure; infinity: it is one again. */
  endAfter(ms: number): void {
    if (ms === this.#endMs) return
    this.#endMs = ms
    this.#check()
  }

  /**
   * See `ReadBody`. Resolves with `ModelError('timeout')` after a silence, or with what broke the
   * connection.
   */
  async read(onBytes: (bytes: Uint8Array) => boolean): Promise<unknown> {
    this.#bytesAt = performance.now()
    this.#dataAt = this.#bytesAt
    this.#check()
    try {
      return await this.#body((bytes) => {
        this.#bytesAt = performance.now()
        return onBytes(bytes)
      })
    } finally {
      this.#over = true
      clearTimeout(this.#timer)
    }
  }

  /** `afterReading`: what has come to this machine was read. */
  #check(afterReading = false): void {
    if (this.#over) return
    const { idleMs, progressMs } = this.#limits
    const now = performance.now()
    const idle = this.#bytesAt + idleMs - now
    const end = this.#bytesAt + this.#endMs - now
    const left = Math.min(idle, this.#dataAt + progressMs - now, end)
    clearTimeout(this.#timer)
    if (left > 0) this.#timer = setTimeout(() => this.#check(), left)
    // A timer of a busy process runs before the bytes are read that came in time.
    else if (!afterReading) setImmediate(() => this.#check(true))
    else this.#connection.abort(left === end ? undefined : this.#silence(left === idle))
  }

  #silence(total: boolean): Error {
    const seconds = Math.round((total ? this.#limits.idleMs : this.#limits.progressMs) / 1_000)
    const sent = total ? `nothing for ${seconds} s.` : `only signs of life for ${seconds} s, and no answer.`
    return modelError('timeout', `The model provider sent ${sent}`)
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

/** Feed bytes; events go to `onEvent` at once. One parser per stream. */
export class SseParser {
  readonly #onEvent: (event: SseEvent) => void
  readonly #limit: number
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  /** The decoder may have the beginning of a character. */
  #charIsCut = false
  #atStart = true
  /** The line that has not ended yet. */
  #line = ''
  /** The last piece ended in CR: an LF that comes next belongs to it. */
  #afterCr = false
  #event = ''
  #data = ''
  #dataLines = 0
  /** The data is plain JSON without a field name, of which the next lines may be more. */
  #plain = false

  constructor(onEvent: (event: SseEvent) => void, limit = MAX_EVENT_CHARS) {
    this.#onEvent = onEvent
    this.#limit = limit
  }

  /** Throws `SseTooLargeError`, or what `onEvent` throws. */
  push(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#pushText(this.#decode(bytes))
  }

  /** The stream has ended: what was still open. */
  end(): void {
    this.#pushText(this.#decoder.decode())
    if (this.#line !== '') this.#endLine(this.#takeLine(''))
    this.#dispatch(false)
  }

  #decode(bytes: Uint8Array): string {
    const endsInAscii = (bytes.at(-1) ?? 0) < 0x80
    // Many times as fast as the decoder of streams.
    if (endsInAscii && !this.#charIsCut)
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
    this.#charIsCut = !endsInAscii
    return this.#decoder.decode(bytes, { stream: true })
  }

  #pushText(text: string): void {
    if (text === '') return
    let from = (this.#afterCr && text.startsWith('\n')) || (this.#atStart && text.startsWith(BOM)) ? 1 : 0
    this.#atStart = false
    this.#afterCr = text.endsWith('\r')
    let cr = text.indexOf('\r', from)
    let lf = text.indexOf('\n', from)
    while (cr !== -1 || lf !== -1) {
      const end = lf === -1 || (cr !== -1 && cr < lf) ? cr : lf
      this.#endLine(this.#takeLine(text.slice(from, end)))
      from = end === cr && lf === end + 1 ? end + 2 : end + 1
      if (cr !== -1 && cr < from) cr = text.indexOf('\r', from)
      if (lf !== -1 && lf < from) lf = text.indexOf('\n', from)
    }
    if (from < text.length) this.#line = this.#takeLine(text.slice(from))
  }

  /** The open line with its next piece. */
  #takeLine(piece: string): string {
    const line = this.#line + piece
    if (line.length + this.#data.length > this.#limit)
      throw new SseTooLargeError(`An event of the stream is larger than ${this.#limit} characters.`)
    this.#line = ''
    return line
  }

  #endLine(line: string): void {
    if (line === '') return this.#dispatch(true)
    // Nearly every line; the rest of this method would come to the same.
    if (line.startsWith('data: {')) return this.#addData(line.slice(6))
    if (line.startsWith(':')) return
    // Some proxies drop into plain JSON, mostly to report an error, and print it over several
    // lines.
    if (line.startsWith('{') || line.trim() === '[DONE]') {
      this.#plain = true
      return this.#addData(line)
    }
    const colon = line.indexOf(':')
    const field = (colon === -1 ? line : line.slice(0, colon)).trim().toLowerCase()
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    // A proxy that wraps a stream in another one sends `data: data: …`.
    if (field === 'data') this.#addData(value.replace(/^(?:data: ?)+/, ''))
    else if (field === 'event') this.#event = value.trim()
    else if (field === 'error') {
      this.#event = 'error'
      this.#addData(value)
    } else if (this.#plain && field !== 'id' && field !== 'retry') this.#addData(line)
  }

  #addData(value: string): void {
    // Some leave out the blank line: what follows a whole value is the next event, and must not
    // wait for the end.
    if (this.#dataLines === 1 && (value.startsWith('{') || value.trim() === '[DONE]')) {
      if (this.#data.trimEnd().endsWith('}') && parseJson(this.#data).ok) this.#dispatch(true)
    }
    this.#data = this.#dataLines === 0 ? value : `${this.#data}\n${value}`
    this.#dataLines++
  }

  #dispatch(complete: boolean): void {
    const event = { event: this.#event, data: this.#data, complete }
    this.#data = ''
    this.#dataLines = 0
    this.#event = ''
    this.#plain = false
    if (event.data !== '') this.#onEvent(event)
  }
}

const BOM = '\ufeff'

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
