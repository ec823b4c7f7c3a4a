/** What a provider said when it failed, from wherever it said it: an HTTP answer, or somewhere inside a 200 stream. */
import { isObject, member, numberMember, parseJson, textMember } from './json.ts'

/** What a provider told us, before it is classified. */
export interface ProviderFailure {
  status: number | undefined
  /** The provider's own codes and types, joined. */
  code: string
  /** The provider's words. */
  message: string
  /** Milliseconds to wait, when it said so. */
  waitMs: number | undefined
}

/** A failed HTTP answer. */
export function failureOfResponse(status: number, headers: Headers, body: string): ProviderFailure {
  const parsed = parseJson(body)
  const said = parsed.ok ? readFailure(parsed.value) : undefined
  const message = said?.message ?? plainText(body)
  return {
    status,
    code: said?.code ?? '',
    message,
    waitMs: waitFromHeaders(headers) ?? said?.waitMs ?? waitFromWords(message),
  }
}

/**
 * The error in a chunk of a 200 stream, wherever it sits, or undefined. `inErrorEvent`: the event itself was called `error`.
 */
export function failureInChunk(chunk: unknown, inErrorEvent: boolean): ProviderFailure | undefined {
  const first: unknown = Array.isArray(member(chunk, 'choices'))
    ? (member(chunk, 'choices') as unknown[])[0]
    : undefined
  for (const place of [chunk, first, member(first, 'delta'), member(first, 'message')]) {
    if (isError(member(place, 'error'))) return readFailure({ error: member(place, 'error') })
  }
  const word = textMember(first, 'finish_reason')?.toLowerCase()
  if (word === 'error')
    return {
      status: undefined,
      code: 'error',
      message: 'The provider broke off with an error.',
      waitMs: undefined,
    }
  if (
    word === 'malformed_function_call' ||
    word === 'network_error' ||
    word === 'insufficient_system_resource'
  ) {
    return { status: undefined, code: word, message: `The provider broke off: ${word}.`, waitMs: undefined }
  }
  if (first !== undefined) return undefined
  const minimax = numberMember(member(chunk, 'base_resp'), 'status_code')
  if (minimax !== undefined && minimax !== 0) return readFailure(member(chunk, 'base_resp'))
  if (inErrorEvent || looksLikeError(chunk)) return readFailure(chunk)
  return undefined
}

/** `error: null`, `""`, `false` and `{}` are how some say that there is none. */
function isError(error: unknown): boolean {
  if (isObject(error)) return Object.keys(error).length > 0
  return typeof error === 'string' && error !== ''
}

/** A chunk without choices that talks about itself. */
function looksLikeError(chunk: unknown): boolean {
  if (!isObject(chunk) || isObject(chunk['usage'])) return false
  if (chunk['object'] === 'error' || chunk['type'] === 'error') return true
  if (isError(chunk['detail']) || Array.isArray(chunk['errors'])) return true
  const says = textMember(chunk, 'message') ?? textMember(chunk, 'msg')
  return (
    says !== undefined && ['code', 'type', 'status', 'status_code'].some((name) => chunk[name] !== undefined)
  )
}

/** Codes and words from an error in any of its shapes: `{error: …}`, `{message, code}`, `{detail}`, a text. */
function readFailure(value: unknown): ProviderFailure {
  const list = Array.isArray(value) ? (value[0] as unknown) : value
  const inner = isError(member(list, 'error')) ? member(list, 'error') : list
  if (typeof inner === 'string') {
    return { status: statusOf(list), code: '', message: plainText(inner), waitMs: waitFromWords(inner) }
  }
  const codes = ['code', 'type', 'status'].flatMap((name) => {
    const found = member(inner, name) ?? member(list, name)
    return typeof found === 'string' || typeof found === 'number' ? [String(found)] : []
  })
  const message = messageIn(inner) ?? messageIn(list) ?? codes.join(' ')
  // OpenRouter keeps the real provider's answer here, as text.
  const raw = textMember(member(inner, 'metadata'), 'raw')
  return {
    status: statusOf(inner) ?? statusOf(list),
    code: codes.join(' '),
    message: plainText(raw === undefined ? message : `${message}: ${raw}`),
    waitMs: retryInfo(inner) ?? waitFromWords(message),
  }
}

function messageIn(value: unknown): string | undefined {
  for (const name of ['message', 'msg', 'detail', 'status_msg', 'error_msg', 'error_message']) {
    const found = member(value, name)
    if (typeof found === 'string' && found !== '') return found
    if (isObject(found) || Array.isArray(found)) return JSON.stringify(found)
  }
  return undefined
}

/** A code that is an HTTP status. */
function statusOf(value: unknown): number | undefined {
  return ['status', 'code', 'status_code', 'http_code']
    .map((name) => numberMember(value, name))
    .find((status) => status !== undefined && status >= 400 && status < 600)
}

/** Google's `details[].retryDelay: "34s"`. */
function retryInfo(value: unknown): number | undefined {
  const details = member(value, 'details')
  if (!Array.isArray(details)) return undefined
  const delay = details.map((detail) => textMember(detail, 'retryDelay')).find((found) => found !== undefined)
  return delay === undefined ? undefined : durationMs(delay)
}

function waitFromHeaders(headers: Headers): number | undefined {
  const ms = headers.get('retry-after-ms')
  if (ms !== null && /^\d+(\.\d+)?$/.test(ms)) return Number(ms)
  const after = headers.get('retry-after')
  if (after === null) return undefined
  if (/^\d+(\.\d+)?$/.test(after)) return Number(after) * 1_000
  const date = Date.parse(after)
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now())
}

/** "Please try again in 1m3.5s", "retry after 20 seconds". */
function waitFromWords(words: string): number | undefined {
  const found =
    /(?:try again in|retry (?:after|in)|wait)\s+((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?)\s*)+)/i.exec(
      words,
    )
  return found?.[1] === undefined ? undefined : durationMs(found[1])
}

const UNIT_MS: Record<string, number> = { ms: 1, mi: 1, s: 1_000, m: 60_000, h: 3_600_000 }

function durationMs(text: string): number | undefined {
  let total: number | undefined
  for (const [, number, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/gi)) {
    const word = unit.toLowerCase()
    const ms = UNIT_MS[word === 'ms' || word.startsWith('milli') ? 'ms' : word.charAt(0)]
    if (ms !== undefined) total = (total ?? 0) + Number(number) * ms
  }
  return total === undefined ? undefined : Math.round(total)
}

/** One line of bounded length, also of an HTML page. */
function plainText(text: string): string {
  const title = /<title>([^<]*)<\/title>/i.exec(text)?.[1]
  const words = (title ?? text.replaceAll(/<[^>]*>/g, ' ')).replaceAll(/\s+/g, ' ').trim()
  return words.length > 400 ? `${words.slice(0, 400)}…` : words
}
