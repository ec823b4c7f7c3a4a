/** Reads the failure that a provider reports, in an HTTP answer or inside of a 200 stream. */
import { failureWord } from './finish-words.ts'
import { type JsonObject, isObject, member, numberMember, parseJson, textMember } from './json.ts'

/** A provider's report, before it is classified. */
export interface ProviderFailure {
  status: number | undefined
  /** The provider's own codes and types, joined. */
  code: string
  /** The provider's words. */
  message: string
  /** Milliseconds to wait, when it said so. */
  waitMs: number | undefined
  /** True to retry, when the provider states that itself. */
  retry?: boolean
}

/** A failed HTTP answer. */
export function failureOfResponse(status: number, headers: Headers, body: string): ProviderFailure {
  const parsed = parseJson(body)
  const said = parsed.ok ? readFailure(parsed.value) : undefined
  const message = said?.message ?? plainText(body)
  const retry = headers.get('x-should-retry')
  return {
    status,
    code: said?.code ?? '',
    message,
    waitMs:
      waitFromHeaders(headers) ??
      said?.waitMs ??
      waitFromWords(message) ??
      (status === 429 ? resetFromHeaders(headers) : undefined),
    ...(retry === 'true' || retry === 'false' ? { retry: retry === 'true' } : {}),
  }
}

/**
 * The error in a chunk of a 200 stream, wherever it sits, or undefined. `inErrorEvent`: the event
 * itself was called `error`.
 */
export function failureInChunk(chunk: unknown, inErrorEvent: boolean): ProviderFailure | undefined {
  const first: unknown = Array.isArray(member(chunk, 'choices'))
    ? (member(chunk, 'choices') as unknown[])[0]
    : undefined
  for (const place of [
    chunk,
    first,
    member(first, 'delta'),
    member(first, 'message'),
    member(chunk, 'x_groq'),
    member(chunk, 'response'),
  ]) {
    const error = member(place, 'error')
    // Next to a text there may be more words; in a choice that is the answer's message, which is
    // not about the failure.
    if (isError(error)) return readFailure(typeof error === 'string' && place === chunk ? chunk : { error })
  }
  const code = brokenOff(first)
  if (code !== undefined) {
    const words = failureText(first) ?? `The provider broke off: ${code}.`
    return { status: undefined, code, message: words, waitMs: waitFromWords(words) }
  }
  const minimax = numberMember(member(chunk, 'base_resp'), 'status_code')
  if (minimax !== undefined && minimax !== 0) return readFailure(member(chunk, 'base_resp'))
  if (first !== undefined) return undefined
  const thrown = exceptionIn(chunk)
  if (thrown !== undefined) return readFailure(thrown)
  if (inErrorEvent || looksLikeError(chunk)) return readFailure(chunk)
  return undefined
}

/**
 * The code of a failure in the words for how a choice ended. The native word says more, whatever a
 * proxy made of it.
 */
function brokenOff(choice: unknown): string | undefined {
  const words = ['native_finish_reason', 'finish_reason'].map((name) => textMember(choice, name) ?? '')
  return words.map(failureWord).find((code) => code !== undefined)
}

/**
 * DashScope's words about the failure, which stand where the answer would be: `error_finish` marks
 * them.
 */
function failureText(choice: unknown): string | undefined {
  if (textMember(choice, 'finish_reason') !== 'error_finish') return undefined
  return textMember(member(choice, 'delta'), 'content') ?? textMember(member(choice, 'message'), 'content')
}

/**
 * `error: null`, `""`, `false`, `{}` and an object of empty members are how some say that there is
 * none.
 */
function isError(error: unknown): boolean {
  if (isObject(error)) return Object.values(error).some(saysSomething)
  if (Array.isArray(error)) return error.length > 0
  if (typeof error === 'number') return error >= 400
  return typeof error === 'string' && error !== ''
}

function saysSomething(value: unknown): boolean {
  if (typeof value === 'string' || typeof value === 'number')
    return String(value).trim() !== '' && !FINE.test(String(value))
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : value === true
}

/** An exception of AWS under its own name, or the fault of a gateway, as the only member. */
function exceptionIn(chunk: unknown): JsonObject | undefined {
  const [[name, inner] = ['', undefined], ...others] = isObject(chunk) ? Object.entries(chunk) : []
  if (others.length > 0 || !/exception$|^fault$/i.test(name) || !isObject(inner)) return undefined
  return { type: name, message: messageIn(inner) ?? textMember(inner, 'faultstring') ?? name }
}

/**
 * Codes and states with which nothing is wrong: iFlytek's success on every frame, a proxy's place
 * in the queue, what it does now.
 */
const FINE =
  /^(?:0+|2\d\d|success|ok|ping|heartbeat|queued|pending|waiting|created|connected|started|running|loading|processing|thinking|generating|searching|in[_ ]?progress|completed?|finished|done)$/i

/** A chunk without choices that talks about itself. */
function looksLikeError(chunk: unknown): boolean {
  if (!isObject(chunk) || isObject(chunk['usage'])) return false
  if (chunk['object'] === 'error' || chunk['type'] === 'error') return true
  if (isError(chunk['detail']) || isError(chunk['errors'])) return true
  if (chunk['error'] === true || chunk['success'] === false) return true
  if (!WORD_MEMBERS.some((name) => typeof alike(chunk, name) === 'string')) return false
  // A type alone may be a notice ("status", "queue").
  const type = alike(chunk, 'type')
  if (typeof type === 'string' && /error|exception|fail|invalid|limit|overload/i.test(type)) return true
  return CODE_MEMBERS.some((name) => {
    const code = name === 'type' ? undefined : alike(chunk, name)
    return (typeof code === 'string' || typeof code === 'number') && !FINE.test(String(code))
  })
}

/**
 * Codes and words from an error in any of its shapes: `{error: …}`, `{message, code}`, `{detail}`,
 * a text.
 */
function readFailure(value: unknown): ProviderFailure {
  const list = firstOf(value)
  const outer = firstOf(
    ['error', 'errors', 'base_resp'].map((name) => member(list, name)).find(isError) ?? list,
  )
  // A proxy that wraps an error in one of its own.
  const inner = outer !== list && isError(member(outer, 'error')) ? member(outer, 'error') : outer
  if (typeof inner === 'number') return { status: inner, code: '', message: '', waitMs: retryInfo(list) }
  const codes = CODE_MEMBERS.flatMap((name) => {
    const found = alike(inner, name) ?? alike(list, name)
    return typeof found === 'string' || typeof found === 'number' ? [String(found)] : []
  })
  const message = typeof inner === 'string' ? besideText(inner, list) : (messageIn(inner) ?? messageIn(list))
  // OpenRouter keeps the real provider's answer here, as text.
  const raw = textMember(member(inner, 'metadata'), 'raw')
  const words = [message ?? codes.join(' '), raw].filter((text) => text !== undefined).join(': ')
  return {
    status: statusOf(inner) ?? statusOf(list),
    code: codes.join(' '),
    message: plainText(words),
    waitMs: retryInfo(inner) ?? retryInfo(list) ?? waitFromWords(words),
  }
}

/** An error that is a text may be only its name, with the words in a member beside it. */
function besideText(error: string, beside: unknown): string {
  const words = messageIn(beside)
  return words === undefined || words.includes(error) ? (words ?? error) : `${error}: ${words}`
}

function firstOf(value: unknown): unknown {
  return Array.isArray(value) ? (value as unknown[])[0] : value
}

/** Names in small letters without lines between, as `alike` compares them. */
const WORD_MEMBERS = [
  'message',
  'msg',
  'detail',
  'statusmsg',
  'errormsg',
  'errmsg',
  'errormessage',
  'errordescription',
  'title',
]
const CODE_MEMBERS = ['code', 'type', 'status', 'statuscode', 'errorcode', 'errcode']

/** The member of this name, however it is spelt: `error_code`, `errorCode`, `__type`, `Message`. */
function alike(value: unknown, name: string): unknown {
  if (!isObject(value)) return undefined
  if (value[name] !== undefined) return value[name]
  return Object.entries(value).find(([key]) => key.replaceAll(/[_-]/g, '').toLowerCase() === name)?.[1]
}

function messageIn(value: unknown): string | undefined {
  for (const name of WORD_MEMBERS) {
    const found = alike(value, name)
    if (typeof found === 'string' && found !== '') return found
    if (isObject(found) || Array.isArray(found)) return JSON.stringify(found)
  }
  return undefined
}

/** A code that is an HTTP status. */
function statusOf(value: unknown): number | undefined {
  return ['status', 'code', 'statuscode', 'httpcode', 'errcode', 'errorcode']
    .map((name) => numberMember({ code: alike(value, name) }, 'code'))
    .find((status) => status !== undefined && status >= 400 && status < 600)
}

/** One line of bounded length, also of an HTML page. */
function plainText(text: string): string {
  const title = /<title>([^<]*)<\/title>/i.exec(text)?.[1]
  const words = (title ?? text.replaceAll(/<[^>]*>/g, ' ')).replaceAll(/\s+/g, ' ').trim()
  return words.length > 400 ? `${words.slice(0, 400)}…` : words
}

// ── How long to wait ────────────────────────────────────────────────────────────────────────────

/** `Retry-After` in seconds, as a date or as a duration; the header in milliseconds wins. */
function waitFromHeaders(headers: Headers): number | undefined {
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
 * When the limit that is used up is given back, from headers like `x-ratelimit-reset-tokens`: a
 * duration, seconds, or a moment. The longest, where several are used up; one of which something
 * remains is not the reason.
 */
function resetFromHeaders(headers: Headers): number | undefined {
  const waits = [...headers].flatMap(([name, value]) => {
    if (name === 'ratelimit') return untilResetOf(value) ?? []
    if (!/rate-?limit-(?:.+-)?reset(?:-|$)/.test(name)) return []
    const remaining = headers.get(name.replace('reset', 'remaining'))
    if (remaining !== null && Number(remaining) > 0) return []
    return untilReset(value.trim()) ?? []
  })
  return waits.length === 0 ? undefined : Math.max(...waits)
}

/**
 * All in one header, as the drafts of the standard have it: `"api";r=0;t=30`, `limit=100,
 * remaining=0, reset=30`.
 */
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

/**
 * Google's `details[].retryDelay: "34s"`, OpenRouter's inner headers, Hugging Face's
 * `estimated_time` of a model that loads, and plain members.
 */
function retryInfo(error: unknown): number | undefined {
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

/**
 * "Please try again in 1m3.5s", "retry after 20 seconds", "retry at 2026-01-01T00:00:00Z", "请在 30
 * 秒后重试".
 */
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
