/**
 * A model that says the same words over and over and would never end. Only what no person asks for: a long run of exact
 * repetitions, of words rather than of dashes or zeros.
 */

/** Characters of the shortest and the longest unit that is seen. */
const SHORTEST = 8
const LONGEST = 600
/** The run must be so long, and have so many rounds. */
const RUN_CHARS = 4_000
const ROUNDS = 12
/** Looked at each time so many characters have come: the work stays linear. */
const EVERY = 1_000
const SEEN = Math.max(RUN_CHARS, LONGEST * ROUNDS)

/** Watches one text while it grows. */
export class ChantWatch {
  #tail = ''
  #since = 0

  /** One more piece. True when the text has become a chant. */
  add(piece: string): boolean {
    this.#tail = (this.#tail + piece).slice(-SEEN)
    this.#since += piece.length
    if (this.#since < EVERY) return false
    this.#since = 0
    return isChant(this.#tail)
  }
}

/** Whether a text ends in such a run. */
export function isChant(text: string): boolean {
  const period = periodOfEnd(text)
  return period !== undefined && /\p{L}{2}/u.test(text.slice(-period))
}

/** The length of the unit that the end of `text` repeats. */
function periodOfEnd(text: string): number | undefined {
  for (let period = SHORTEST; period <= Math.min(LONGEST, text.length / ROUNDS); period++) {
    const run = Math.max(RUN_CHARS, period * ROUNDS)
    if (text.length < run) return undefined
    if (repeats(text, period, run)) return period
  }
  return undefined
}

/** Whether the last `run` characters all equal the one `period` before them. */
function repeats(text: string, period: number, run: number): boolean {
  const start = text.length - run + period
  for (let at = text.length - 1; at >= start; at--) {
    if (text.charCodeAt(at) !== text.charCodeAt(at - period)) return false
  }
  return true
}

/** `text` with its repetitions left out: what was said before them, and the first round. */
export function withoutChant(text: string): string {
  const period = periodOfEnd(text)
  if (period === undefined) return text
  let start = text.length - period
  while (start > 0 && text.charCodeAt(start - 1) === text.charCodeAt(start - 1 + period)) start--
  return text.slice(0, start + period).toWellFormed()
}
