/** How long a provider asks us to wait, in milliseconds, from headers, members and words. */
import { member, numberMember, textMember } from './json.ts'

/** `Retry-After` in seconds, as a date or as a duration; the header in milliseconds wins. */
export function waitFromHeaders(headers: Headers): number | undefined {
  const ms = headers.get('retry-after-ms')
  if (ms !== null && NUMBER.test(ms)) return Number(ms)
  // Two proxies that both set it are joined by a comma, which a date has too.
  const after = headers
    .get('retry-after')
    ?.trim()
    .replace(/^(\d[^,]*),.*$/, '$1')
  if (after === undefined || after === '') return undefined
  if (NUMBER.test(after)) return Math.round(Number(after) * 1_000)
  const date = /^[a-z]{3},? /i.test(after) ? Date.parse(after) : moment(after)
  return Number.isNaN(date) ? durationMs(after) : Math.max(0, date - Date.now())
}

/** Milliseconds since 1970 of a moment as the standard writes it, or NaN. */
function moment(text: string): number {
  return /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN
}

/**
 * When the limit that is used up is given back, from headers like `x-ratelimit-reset-tokens`: a duration, seconds, or a
 * moment. The longest, where several are used up; one of which something remains is not the reason.
 */
export function resetFromHeaders(headers: Headers): number | undefined {
  const waits = [...headers].flatMap(([name, value]) => {
    if (name === 'ratelimit') return untilResetOf(value) ?? []
    if (!/rate-?limit-(?:.+-)?reset(?:-|$)/.test(name)) return []
    const remaining = headers.get(name.replace('reset', 'remaining'))
    if (remaining !== null && Number(remaining) > 0) return []
    return untilReset(value.trim()) ?? []
  })
  return waits.length === 0 ? undefined : Math.max(...waits)
}

/** All in one header, as the drafts of the standard have it: `"api";r=0;t=30`, `limit=100, remaining=0, reset=30`. */
function untilResetOf(value: string): number | undefined {
  const remaining = /\b(?:r|remaining)=(\d+)/.exec(value)?.[1]
  if (remaining !== undefined && Number(remaining) > 0) return undefined
  const reset = /\b(?:t|reset)=(\d+)/.exec(value)?.[1]
  return reset === undefined ? undefined : untilReset(reset)
}

function untilReset(value: string): number | undefined {
  if (!NUMBER.test(value)) {
    const at = moment(value)
    return Number.isNaN(at) ? durationMs(value) : Math.max(0, at - Date.now())
  }
  const number = Number(value)
  // Milliseconds since 1970, seconds since 1970, or seconds from now.
  if (number > 1e11) return Math.max(0, Math.round(number - Date.now()))
  if (number > 1e9) return Math.max(0, Math.round(number * 1_000 - Date.now()))
  return Math.round(number * 1_000)
}

/** Google's `details[].retryDelay: "34s"`, OpenRouter's inner headers, Hugging Face's `estimated_time` of a model that loads, and plain members. */
export function retryInfo(error: unknown): number | undefined {
  const details = member(error, 'details')
  for (const detail of Array.isArray(details) ? (details as unknown[]) : []) {
    const delay = textMember(detail, 'retryDelay')
    if (delay !== undefined) return durationMs(delay)
  }
  const ms = numberMember(error, 'retry_after_ms')
  if (ms !== undefined) return ms
  const metadata = member(error, 'metadata')
  for (const name of ['retry_after', 'retry_after_seconds', 'estimated_time']) {
    const seconds = numberMember(error, name) ?? numberMember(metadata, name)
    if (seconds !== undefined) return Math.round(seconds * 1_000)
    const duration = textMember(error, name)
    if (duration !== undefined) return durationMs(duration)
  }
  const reset = numberMember(member(metadata, 'headers'), 'X-RateLimit-Reset')
  // A moment since 1970, in milliseconds.
  return reset === undefined || reset < 1e12 ? undefined : Math.max(0, reset - Date.now())
}

/** "Please try again in 1m3.5s", "retry after 20 seconds", "retry at 2026-01-01T00:00:00Z", "请在 30 秒后重试". */
export function waitFromWords(words: string): number | undefined {
  const duration = WORDS.exec(words)?.[1]
  if (duration !== undefined) return durationMs(duration)
  const at = moment(MOMENT_WORDS.exec(words)?.[1] ?? '')
  if (!Number.isNaN(at)) return Math.max(0, at - Date.now())
  const [, number, unit] = CHINESE_WORDS.exec(words) ?? []
  return number === undefined ? undefined : Math.round(Number(number) * (CHINESE_MS[unit ?? ''] ?? 0))
}

const NUMBER = /^\d+(\.\d+)?$/
const WORDS =
  /(?:try again|retry(?:ing)?|wait|available)(?: (?:in|after|for|at least|about|another))*:?\s+((?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d)(?![a-z])[\s,]*(?:and\s+)?)+)/i
const MOMENT_WORDS =
  /(?:try again|retry|wait|available|access)\b[^.]{0,40}?\b(?:at|on|after|until)\s+(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d))/i
const CHINESE_WORDS = /(\d+(?:\.\d+)?)\s*(秒|分钟|小时)(?:钟)?(?:之)?后/
const CHINESE_MS: Record<string, number> = { 秒: 1_000, 分钟: 60_000, 小时: 3_600_000 }
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
