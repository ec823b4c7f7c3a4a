/** Thoughts that stand in the text between tags: only at its very start, and only where a profile says so. */
import { impliedThought } from './implied-thought.ts'
import type { TagPair } from './profiles.ts'

/** A piece of an answer, told apart. */
export interface Told {
  type: 'text' | 'thought'
  text: string
}

/** Feed pieces of text, get thoughts and text. A tag may be cut anywhere. */
export class ThinkTags {
  readonly #pairs: readonly TagPair[]
  #state: 'start' | 'opened' | 'thought' | 'after' | 'text'
  #open = ''
  #close = ''
  /** The provider tells thoughts apart: no tag opens, but its closing one may have slipped through. */
  #apart = false
  /** The text began without a tag. */
  #unopened = false
  /** What may still become a tag. */
  #held = ''

  constructor(pairs: readonly TagPair[]) {
    this.#pairs = pairs
    this.#state = pairs.length === 0 ? 'text' : 'start'
  }

  /** The provider tells thoughts apart itself: from here on, text is text. Returns what was held. */
  noTags(): Told[] {
    if (this.#state !== 'start') return []
    this.#apart = true
    return this.#held === '' ? [] : this.end()
  }

  /** True if `piece` stands between tags, or opens one. */
  takes(piece: string): boolean {
    if (this.#state !== 'start') return this.#state === 'opened' || this.#state === 'thought'
    return this.#pairs.some(([open]) => piece.trimStart().startsWith(open))
  }

  push(piece: string): Told[] {
    const told: Told[] = []
    let rest = this.#held + piece
    this.#held = ''
    if (this.#state === 'start') rest = this.#start(rest)
    if (this.#state === 'opened') {
      rest = rest.trimStart()
      if (rest !== '') this.#state = 'thought'
    }
    if (this.#state === 'thought') rest = this.#thought(rest, told)
    if (this.#state === 'after') {
      // The line ends between thoughts and answer belong to neither.
      rest = rest.trimStart()
      if (rest === '') return told
      if (rest.startsWith(this.#open)) {
        // It thinks once more.
        this.#state = 'opened'
        return [...told, ...this.push(rest.slice(this.#open.length))]
      }
      if (this.#open.startsWith(rest)) {
        this.#held = rest
        return told
      }
      this.#state = 'text'
    }
    if (this.#state === 'text' && rest !== '') told.push({ type: 'text', text: rest })
    return told
  }

  /** What a whole text says in which thoughts end that never began. Undefined for any other. */
  retold(text: string): { text: string; thought: string } | undefined {
    return this.#unopened ? impliedThought(text, this.#pairs) : undefined
  }

  /** The text is over. */
  end(): Told[] {
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

  #thought(text: string, told: Told[]): string {
    const end = text.indexOf(this.#close)
    const thought = end === -1 ? text.slice(0, text.length - this.#cutTag(text)) : text.slice(0, end)
    if (thought !== '') told.push({ type: 'thought', text: thought })
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
