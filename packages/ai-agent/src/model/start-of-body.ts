/** How a body begins, which tells an event stream from a JSON or HTML body; content types lie. */
import { modelError } from './errors.ts'

/** Longest answer that came as one JSON body, in characters. */
const MAX_JSON_CHARS = 64 * 1024 * 1024
/** As much of a stream is kept as may be words instead of events, in characters. */
const MAX_WORDS = 2_000
/** Lines that are part of an event stream: empty ones, comments, fields. */
const OF_STREAM = /^\s*(?:$|:|(?:data|event|id|retry|error)\s*:)/i

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

  /** Everything, unless it is a stream. */
  get text(): string {
    return this.#text
  }

  /** What a stream begins with that belongs to no stream: some proxies write why they failed, and say 200. Empty: nothing. */
  get words(): string {
    const lines = this.#text
      .slice(0, MAX_WORDS)
      .split(/\r\n|\r|\n/)
      .filter((line) => !OF_STREAM.test(line))
    const words = lines.join(' ').trim()
    // One word may be a field that was cut; bytes that are no text are no words.
    return this.isStream && /\s/.test(words) && !words.includes('\ufffd') ? words : ''
  }

  /** What belongs to the event stream, if it is one. */
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
