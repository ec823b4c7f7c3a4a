/**
 * Takes secrets out of text that leaves the process as a log. Redaction by path misses what is nested deeper than
 * expected and what stands inside a message; this knows the values, and the shapes of common keys.
 */

const HIDDEN = '[hidden]'

const SHAPES = [
  /\bsk-[A-Za-z0-9_-]{12,}/g,
  /\b(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{20,}/g,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
  /\bAKIA[0-9A-Z]{16}\b/g,
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/g,
  /(?<=\bBearer )[A-Za-z0-9._~+/=-]{8,}/gi,
  /(?<=session_token=)[^;\s"\\]+/g,
  /(?<=[?&]token=)[^&\s"\\]+/g,
]

/** A function that hides `secrets` and everything that looks like one. Values shorter than 8 are too common to hide. */
export function makeScrubber(secrets: readonly string[]): (text: string) => string {
  const values = secrets.filter((secret) => secret.length >= 8).toSorted((a, b) => b.length - a.length)
  return function scrub(text) {
    let clean = text
    for (const value of values) clean = clean.replaceAll(value, HIDDEN)
    for (const shape of SHAPES) clean = clean.replace(shape, HIDDEN)
    return clean
  }
}
