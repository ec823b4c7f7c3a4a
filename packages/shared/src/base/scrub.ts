/**
 * Removes secrets from text before it leaves the process as a log. Redaction by path misses values
 * that are nested deeper than expected or part of a message; this knows the values, and the shapes
 * of common keys.
 */

const HIDDEN = '[hidden]'

/** Each matches in one pass, however long the text: no open repetition before the deciding part. */
const SHAPES = [
  /\bsk-[A-Za-z0-9_-]{12,}/g,
  /\b(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{20,}/g,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
  /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/g,
  /\bglpat-[A-Za-z0-9_-]{16,}/g,
  /\bhf_[A-Za-z0-9]{20,}/g,
  /\bnpm_[A-Za-z0-9]{30,}/g,
  /\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}/g,
  /\bduffel_(?:live|test)_[A-Za-z0-9_-]{10,}/g,
  // Google: API keys, client secrets, access tokens, refresh tokens.
  /\bAIza[A-Za-z0-9_-]{30,}/g,
  /\bGOCSPX-[A-Za-z0-9_-]{10,}/g,
  /\bya29\.[A-Za-z0-9._-]{10,}/g,
  /\b1\/\/0[A-Za-z0-9_-]{20,}/g,
  /-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]{0,20000}?-----END [A-Z ]{0,30}PRIVATE KEY-----/g,
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/g,
]

/**
 * Slow ones, each after a fast test without which it cannot match: a look-behind is tried at every
 * character.
 */
const SLOW_SHAPES = [
  [/bearer /i, /(?<=\bBearer )[A-Za-z0-9._~+/=-]{8,}/gi],
  [/session_token=/, /(?<=session_token=)[^;\s"\\]+/g],
  [
    /[?&](?:\w*token|client_secret|\w*key)=/,
    /(?<=[?&](?:token|access_token|refresh_token|client_secret|api_key|key)=)[^&\s"\\]+/g,
  ],
] as const

/** A password in a URL: from the colon to the @. */
const ADDRESS = /:\/\/[^\s:@/"\\]{0,200}:/
const IN_ADDRESS = /\b([a-z][a-z0-9+.-]{0,20}:\/\/[^\s:@/"\\]{0,200}:)[^\s@/"\\]{1,500}@/gi

/**
 * A function that hides `secrets` and everything shaped like one. Values shorter than 8 are too
 * common to hide.
 */
export function makeScrubber(secrets: readonly string[]): (text: string) => string {
  const values = secrets.filter((secret) => secret.length >= 8).toSorted((a, b) => b.length - a.length)
  return function scrub(text) {
    let clean = text
    for (const value of values) clean = clean.replaceAll(value, HIDDEN)
    for (const shape of SHAPES) clean = clean.replace(shape, HIDDEN)
    for (const [sign, shape] of SLOW_SHAPES) if (sign.test(clean)) clean = clean.replace(shape, HIDDEN)
    return ADDRESS.test(clean) ? clean.replace(IN_ADDRESS, `$1${HIDDEN}@`) : clean
  }
}
