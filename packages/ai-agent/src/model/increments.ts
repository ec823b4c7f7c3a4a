/** Deltas that repeat everything said before, for providers whose profile says that they may. */

/** A repetition of at least so many characters is no chance. */
const CERTAIN = 8

/** One text that grows. An ordinary stream is told from a cumulative one by its first deltas; what is in doubt is held. */
export class Increments {
  #kind: 'ordinary' | 'cumulative' | 'in doubt'
  /** The last delta in full, while the stream may be cumulative. */
  #said = ''
  #shown = 0
  #held = ''

  constructor(mayRepeat: boolean) {
    this.#kind = mayRepeat ? 'in doubt' : 'ordinary'
  }

  /** What is new in `delta`, as far as it is certain. */
  take(delta: string): string {
    if (this.#kind === 'ordinary' || delta === '') return delta
    if (!delta.startsWith(this.#said)) return this.#ordinary(delta)
    const first = this.#said === ''
    if (this.#said.length >= CERTAIN) this.#kind = 'cumulative'
    this.#said = delta
    if (this.#kind === 'cumulative' || first) return this.#fresh()
    this.#held += delta
    return ''
  }

  /** The stream is over: a text in doubt is taken as the profile says. */
  end(): string {
    return this.#kind === 'in doubt' ? this.#fresh() : ''
  }

  #fresh(): string {
    const fresh = this.#said.slice(this.#shown)
    this.#shown = this.#said.length
    this.#held = ''
    return fresh
  }

  #ordinary(delta: string): string {
    const text = this.#kind === 'cumulative' ? delta : this.#held + delta
    this.#kind = 'ordinary'
    this.#held = ''
    return text
  }
}
