/**
 * Terminal output as lines of coloured text. An allow-list: SGR colours are obeyed; a carriage
 * return begins its line again (progress bars, and the model reads the same last state); a
 * backspace takes one character back. Every other control does nothing at all: no title, no
 * clipboard, no links, no cursor, no clearing of what was there.
 *
 * A string sequence (OSC, DCS, APC, PM, SOS) without a terminator is over at the end of its line,
 * so that output cannot make the rest of itself disappear. Nothing is buffered but the parameters
 * of one sequence. How the text is cut into chunks makes no difference.
 */
import { applySgr, type SgrStyle, styleKey } from './sgr.ts'

interface Span {
  readonly text: string
  readonly style: SgrStyle | null
}
export type Line = readonly Span[]

/** Lines that never change again stand in full blocks; only the last block is rendered again. */
export interface Block {
  readonly id: number
  readonly lines: readonly Line[]
}

export interface Rendered {
  readonly blocks: readonly Block[]
  /** Lines that were dropped at the top. */
  readonly dropped: number
}

const BLOCK_LINES = 50
const MAX_PARAMETERS = 96
/** Turn the order of text round, or hide it: shown as a replacement character. */
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

type State = 'text' | 'escape' | 'escape-rest' | 'csi' | 'csi-skip' | 'string' | 'string-escape'

export class AnsiText {
  readonly #maxLines: number
  #state: State = 'text'
  #parameters = ''
  #style: SgrStyle | null = null
  #blocks: Block[] = []
  #open: Line[] = []
  #line: { text: string; style: SgrStyle | null; key: string }[] = []
  #returned = false
  #nextId = 0
  #dropped = 0

  /** Keeps at least the last `maxLines` lines. */
  constructor(maxLines = 2000) {
    this.#maxLines = maxLines
  }

  feed(text: string): void {
    let at = 0
    while (at < text.length) {
      if (this.#state === 'text') {
        const end = nextControl(text, at)
        if (end > at) this.#write(text.slice(at, end))
        at = end
        if (at < text.length) this.#control(text.charCodeAt(at++))
      } else {
        at = this.#sequence(text, at)
      }
    }
  }

  render(): Rendered {
    const last = this.#line.length > 0 ? [...this.#open, lineOf(this.#line)] : this.#open
    const blocks =
      last.length > 0 ? [...this.#blocks, { id: this.#nextId, lines: [...last] }] : [...this.#blocks]
    return { blocks, dropped: this.#dropped }
  }

  #write(raw: string): void {
    if (this.#returned) {
      this.#line = []
      this.#returned = false
    }
    const text = raw.replace(DIRECTION, '\ufffd')
    const key = styleKey(this.#style)
    const last = this.#line.at(-1)
    if (last !== undefined && last.key === key) last.text += text
    else this.#line.push({ text, style: this.#style, key })
  }

  #control(code: number): void {
    switch (code) {
      case 0x0a:
        return this.#newline()
      case 0x0d:
        this.#returned = true
        return
      case 0x08:
        return this.#backspace()
      case 0x1b:
        this.#state = 'escape'
        return
      case 0x9b:
        return this.#startCsi()
      case 0x90:
      case 0x98:
      case 0x9d:
      case 0x9e:
      case 0x9f:
        this.#state = 'string'
        return
      default:
    }
  }

  /** One step inside a sequence; returns where to go on. */
  #sequence(text: string, at: number): number {
    const code = text.charCodeAt(at)
    // A new line, CAN and SUB end any sequence; ESC begins another one.
    if (code === 0x0a || code === 0x18 || code === 0x1a) {
      this.#state = 'text'
      return code === 0x0a ? at : at + 1
    }
    if (code === 0x1b) {
      this.#state = this.#state === 'string' || this.#state === 'string-escape' ? 'string-escape' : 'escape'
      return at + 1
    }
    switch (this.#state) {
      case 'string-escape':
        // ESC \ ends the string; ESC and anything else is a new sequence.
        this.#state = code === 0x5c ? 'text' : 'escape'
        return code === 0x5c ? at + 1 : at
      case 'string':
        if (code === 0x07 || code === 0x9c) this.#state = 'text'
        return at + 1
      case 'escape':
        return this.#afterEscape(code, at)
      case 'escape-rest':
        if (code >= 0x30) this.#state = 'text'
        return at + 1
      default:
        return this.#inCsi(code, at)
    }
  }

  #afterEscape(code: number, at: number): number {
    if (code === 0x5b) this.#startCsi()
    else if (code === 0x5d || code === 0x50 || code === 0x58 || code === 0x5e || code === 0x5f)
      this.#state = 'string'
    else if (code >= 0x20 && code <= 0x2f) this.#state = 'escape-rest'
    else this.#state = 'text'
    // A control character after ESC is not part of a sequence: it is handled as text would be.
    return code < 0x20 || code >= 0x7f ? at : at + 1
  }

  #startCsi(): void {
    this.#state = 'csi'
    this.#parameters = ''
  }

  #inCsi(code: number, at: number): number {
    if (code >= 0x40 && code <= 0x7e) {
      if (code === 0x6d && this.#state === 'csi' && /^[\d;:]*$/.test(this.#parameters)) {
        this.#style = applySgr(this.#style, this.#parameters)
      }
      this.#state = 'text'
      return at + 1
    }
    if (code < 0x20 || code > 0x3f) {
      // Not a sequence after all.
      this.#state = 'text'
      return at
    }
    if (this.#parameters.length >= MAX_PARAMETERS) this.#state = 'csi-skip'
    else this.#parameters += String.fromCharCode(code)
    return at + 1
  }

  #backspace(): void {
    const last = this.#line.at(-1)
    if (last === undefined || this.#returned) return
    last.text = last.text.slice(0, /[\ud800-\udbff][\udc00-\udfff]$/.test(last.text) ? -2 : -1)
    if (last.text === '') this.#line.pop()
  }

  #newline(): void {
    this.#open.push(lineOf(this.#line))
    this.#line = []
    this.#returned = false
    if (this.#open.length < BLOCK_LINES) return
    this.#blocks.push({ id: this.#nextId++, lines: this.#open })
    this.#open = []
    while ((this.#blocks.length - 1) * BLOCK_LINES >= this.#maxLines) {
      this.#blocks.shift()
      this.#dropped += BLOCK_LINES
    }
  }
}

function lineOf(spans: readonly { text: string; style: SgrStyle | null }[]): Line {
  return spans.map(({ text, style }) => ({ text, style }))
}

/** The position of the next control character, or the end. A tab is text. */
function nextControl(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if ((code < 0x20 && code !== 0x09) || (code >= 0x7f && code <= 0x9f)) return at
  }
  return text.length
}

/** All of a text at once. */
export function renderAnsi(text: string, maxLines?: number): Rendered {
  const ansi = new AnsiText(maxLines)
  ansi.feed(text)
  return ansi.render()
}
