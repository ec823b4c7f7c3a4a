/** How long a provider asks us to wait, in milliseconds, from headers, members and words. */
import { member, numberMember, textMember } from './json.ts'

/** `Retry-After` in seconds, as a date or as a duration; the header in milliseconds wins. */
export function waitFromHeaders(headers: Headers): number | undefined {
  const ms = headers.get('retry-after-ms')
  if (ms !== null && NUMBER.test(ms)) return Number(ms)
  const after = headers.get('retry-after')?.trim()
  if (after === undefined || after === '') return undefined
  if (NUMBER.test(after)) return Math.round(Number(after) * 1_000)
  const date = /^[a-z]{3},? /i.test(after) || /^\d{4}-\d\d-\d\dT/.test(after) ? Date.parse(after) : Number.NaN
  return Number.isNaN(date) ? durationMs(after) : Math.max(0, date - Date.now())
}

/** Google's `details[].retryDelay: "34s"`, OpenRouter's inner headers, and plain members. */
export function retryInfo(error: unknown): number | undefined {
  const details = member(error, 'details')
  for (const detail of Array.isArray(details) ? (details as unknown[]) : []) {
    const delay = textMember(detail, 'retryDelay')
    if (delay !== undefined) return durationMs(delay)
  }
  const ms = numberMember(error, 'retry_after_ms')
  if (ms !== undefined) return ms
  const seconds = numberMember(error, 'retry_after') ?? numberMember(error, 'retry_after_seconds')
  if (seconds !== undefined) return Math.round(seconds * 1_000)
  const reset = numberMember(member(member(error, 'metadata'), 'headers'), 'X-RateLimit-Reset')
  // A moment since 1970, in milliseconds.
  return reset === undefined || reset < 1e12 ? undefined : Math.max(0, reset - Date.now())
}

/** "Please try again in 1m3.5s", "retry after 20 seconds". */
export function waitFromWords(words: string): number | undefined {
  const found = WORDS.exec(words)
  return found?.[1] === undefined ? undefined : durationMs(found[1])
}

const NUMBER = /^\d+(\.\d+)?$/
const WORDS =
  /(?:try again|retry(?:ing)?|wait|available)(?: (?:in|after|for|at least|about|another))*:?\s+((?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d)[\s,]*(?:and\s+)?)+)/i
const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

function durationMs(text: string): number | undefined {
  let total: number | undefined
  for (const [, number, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/gi)) {
    const word = unit.toLowerCase()
    const ms = UNIT_MS[word === 'ms' || word.startsWith('milli') ? 'ms' : word.charAt(0)]
    if (ms !== undefined) total = (total ?? 0) + Number(number) * ms
  }
  return total === undefined ? undefined : Math.round(total)
}
