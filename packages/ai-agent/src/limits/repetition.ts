/**
 * Detects an answer that repeats itself without end: a long run of exact repetitions, of words
 * rather than of dashes or zeros, which no person asks for.
 */

/** Characters of the shortest and the longest unit that is detected. */
const SHORTEST = 8
const LONGEST = 600
/** Minimal length of a run in characters, and its minimal number of rounds. */
const RUN_CHARS = 4_000
const ROUNDS = 12
/** Characters between two checks, which keeps the work linear. */
const EVERY = 1_000
const SEEN = Math.max(RUN_CHARS, LONGEST * ROUNDS)

/** Checks one text while it grows. */
export class RepetitionDetector {
  #tail = ''
  #since = 0

  /** Adds a piece. Returns true when the text ends in a repetition. */
  add(piece: string): boolean {
    this.#tail += piece
    this.#since += piece.length
    if (this.#since < EVERY) return false
    this.#since = 0
    this.#tail = this.#tail.slice(-SEEN)
    return endsInRepetition(this.#tail)
  }
}

/** True when a text ends in such a run. */
function endsInRepetition(text: string): boolean {
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

/** True when each of the last `run` characters equals the one `period` before it. */
function repeats(text: string, period: number, run: number): boolean {
  const start = text.length - run + period
  for (let at = text.length - 1; at >= start; at--) {
    if (text.charCodeAt(at) !== text.charCodeAt(at - period)) return false
  }
  return true
}

/** The text up to the end of the first round of its final repetition. */
export function withoutRepetition(text: string): string {
  const period = periodOfEnd(text)
  if (period === undefined) return text
  let start = text.length - period
  while (start > 0 && text.charCodeAt(start - 1) === text.charCodeAt(start - 1 + period)) start--
  return text.slice(0, start + period).toWellFormed()
}
