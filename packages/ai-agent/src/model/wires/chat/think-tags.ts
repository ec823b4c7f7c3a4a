/**
 * Thoughts that stand in the text between tags: only at its very start, and only where a profile
 * says so.
 */
import { codeIn } from '../../markdown-code.ts'
import type { TagPair } from '../../profiles.ts'

/** A piece of an answer, classified. */
export interface AnswerPiece {
  type: 'text' | 'thought'
  text: string
}

/** Feed pieces of text, get thoughts and text. A tag may be cut anywhere. */
export class ThinkTags {
  readonly #pairs: readonly TagPair[]
  #state: 'start' | 'opened' | 'thought' | 'after' | 'text'
  #open = ''
  #close = ''
  /**
   * The provider separates thoughts: no tag opens, but its closing one may have slipped through.
   */
  #apart = false
  /** The text began without a tag. */
  #unopened = false
  /** Text that may still become a tag. */
  #held = ''

  constructor(pairs: readonly TagPair[]) {
    this.#pairs = pairs
    this.#state = pairs.length === 0 ? 'text' : 'start'
  }

  /** The provider separates thoughts itself: from here on, text is text. Returns the held text. */
  noTags(): AnswerPiece[] {
    if (this.#state !== 'start') return []
    this.#apart = true
    return this.#held === '' ? [] : this.end()
  }

  /** True if `piece` stands between tags, or opens one. */
  takes(piece: string): boolean {
    if (this.#state !== 'start') return this.#state === 'opened' || this.#state === 'thought'
    return this.#pairs.some(([open]) => piece.trimStart().startsWith(open))
  }

  push(piece: string): AnswerPiece[] {
    if (this.#state === 'text' && this.#held === '')
      return piece === '' ? [] : [{ type: 'text', text: piece }]
    const pieces: AnswerPiece[] = []
    let rest = this.#held + piece
    this.#held = ''
    if (this.#state === 'start') rest = this.#start(rest)
    if (this.#state === 'opened') {
      rest = rest.trimStart()
      if (rest !== '') this.#state = 'thought'
    }
    if (this.#state === 'thought') rest = this.#thought(rest, pieces)
    if (this.#state === 'after') {
      // The line ends between thoughts and answer belong to neither.
      rest = rest.trimStart()
      if (rest === '') return pieces
      if (rest.startsWith(this.#open)) {
        // A second thought begins.
        this.#state = 'opened'
        return [...pieces, ...this.push(rest.slice(this.#open.length))]
      }
      if (this.#open.startsWith(rest)) {
        this.#held = rest
        return pieces
      }
      this.#state = 'text'
    }
    if (this.#state === 'text' && rest !== '') pieces.push({ type: 'text', text: rest })
    return pieces
  }

  /** A whole text in which thoughts end that never began, split. Undefined for any other. */
  reread(text: string): { text: string; thought: string } | undefined {
    return this.#unopened ? impliedThought(text, this.#pairs) : undefined
  }

  /** The text is over. */
  end(): AnswerPiece[] {
    const type = this.#state === 'thought' ? 'thought' : 'text'
    const text = this.#held
    this.#held = ''
    if (this.#state === 'start') this.#state = 'text'
    return text === '' ? [] : [{ type, text }]
  }

  /** Returns what stands behind the tag, or everything when there is none. */
  #start(text: string): string {
    const begun = text.trimStart()
    const opening = this.#apart ? undefined : this.#pairs.find(([open]) => begun.startsWith(open))
    const closing = this.#pairs.find(([, close]) => begun.startsWith(close))
    const [open, close] = opening ?? closing ?? ['', '']
    if (open !== '') {
      this.#state = opening === undefined ? 'after' : 'opened'
      this.#open = open
      this.#close = close
      return begun.slice(opening === undefined ? close.length : open.length)
    }
    const tags = this.#apart ? this.#pairs.map((pair) => pair[1]) : this.#pairs.flat()
    if (tags.some((tag) => tag.startsWith(begun))) {
      this.#held = text
      return ''
    }
    this.#state = 'text'
    this.#unopened = !this.#apart
    return text
  }

  #thought(text: string, pieces: AnswerPiece[]): string {
    const end = text.indexOf(this.#close)
    const thought = end === -1 ? text.slice(0, text.length - this.#cutTag(text)) : text.slice(0, end)
    if (thought !== '') pieces.push({ type: 'thought', text: thought })
    if (end === -1) {
      this.#held = text.slice(thought.length)
      return ''
    }
    this.#state = 'after'
    return text.slice(end + this.#close.length)
  }

  /** Length of the longest end of `text` that may be the beginning of the closing tag. */
  #cutTag(text: string): number {
    for (let length = Math.min(this.#close.length - 1, text.length); length > 0; length--) {
      if (text.endsWith(this.#close.slice(0, length))) return length
    }
    return 0
  }
}

// ── Thoughts without an opening tag
// ───────────────────────────────────────────────────────────────── The opening tag stood in the
// prompt, as the templates of many open models have it. A closing tag inside code is part of the
// text.

/** At most so many tags of a kind are examined: only one counts, and the work stays bounded. */
const MOST_TAGS = 100

/**
 * The pieces of a whole text, classified; undefined where no thoughts end in it, also where it only
 * mentions the tag.
 */
function impliedThought(
  text: string,
  pairs: readonly TagPair[],
): { text: string; thought: string } | undefined {
  if (!pairs.some(([, close]) => text.includes(close))) return undefined
  const code = codeIn(text)
  const isCode = (at: number): boolean => code.spans.some(({ from, to }) => from <= at && at < to)
  for (const [open, close] of pairs) {
    const end = placesOf(close, text).find((at) => {
      if (!isAlone(text, at, close)) return false
      // Thoughts may be cut off in a block of code. Of both readings the one is right that leaves
      // no block open.
      return !isCode(at) || (!code.whole && codeIn(text.slice(at + close.length)).whole)
    })
    if (end === undefined) continue
    const begun = placesOf(open, text).some((at) => at < end && !isCode(at))
    if (!begun)
      return { thought: text.slice(0, end).trimStart(), text: text.slice(end + close.length).trimStart() }
  }
  return undefined
}

function placesOf(tag: string, text: string): number[] {
  const places: number[] = []
  for (let at = text.indexOf(tag); at !== -1 && places.length < MOST_TAGS;) {
    places.push(at)
    at = text.indexOf(tag, at + tag.length)
  }
  return places
}

/** At the beginning of its line, or at the end. */
function isAlone(text: string, at: number, tag: string): boolean {
  const behind = at + tag.length
  const lineEnd = text.indexOf('\n', behind)
  const before = text.slice(text.lastIndexOf('\n', at - 1) + 1, at)
  const after = text.slice(behind, lineEnd === -1 ? text.length : lineEnd)
  return before.trim() === '' || after.trim() === ''
}
