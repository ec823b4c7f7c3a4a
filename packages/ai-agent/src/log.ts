/** The only file here that imports pino: JSON lines on stderr (stdout is the protocol on stdio), without secrets. */
import { pino } from 'pino'
import type { Logger } from 'pino'

export type { Logger } from 'pino'

const HIDDEN = '[hidden]'

/** The shapes of common keys. Redaction by path misses what is nested deeper, and what stands inside a message. */
const SHAPES = [
  /\bsk-[A-Za-z0-9_-]{12,}/g,
  /\b(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{20,}/g,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
  /\bAKIA[0-9A-Z]{16}\b/g,
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/g,
  /(?<=\bBearer )[A-Za-z0-9._~+/=-]{8,}/gi,
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

/** `write` gets one line at a time, scrubbed. */
export function makeLog(
  level: string,
  secrets: readonly string[],
  write: (line: string) => void = (line) => void process.stderr.write(line),
): Logger {
  const scrub = makeScrubber(secrets)
  return pino(
    { level, base: { part: 'ai-agent' }, timestamp: pino.stdTimeFunctions.isoTime },
    { write: (line: string) => write(scrub(line)) },
  )
}
