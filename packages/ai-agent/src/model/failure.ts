/** What a provider said when it failed, from wherever it said it: an HTTP answer, or somewhere inside a 200 stream. */
import { failureWord } from './finish-words.ts'
import { isObject, member, numberMember, parseJson, textMember } from './json.ts'
import type { JsonObject } from './json.ts'
import { resetFromHeaders, retryInfo, waitFromHeaders, waitFromWords } from './wait.ts'

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
    waitMs:
      waitFromHeaders(headers) ??
      said?.waitMs ??
      waitFromWords(message) ??
      (status === 429 ? resetFromHeaders(headers) : undefined),
  }
}

/**
 * The error in a chunk of a 200 stream, wherever it sits, or undefined. `inErrorEvent`: the event itself was called `error`.
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
  ]) {
    if (isError(member(place, 'error'))) return readFailure({ error: member(place, 'error') })
  }
  const code = failureWord(textMember(first, 'finish_reason') ?? '')
  if (code !== undefined) {
    return { status: undefined, code, message: `The provider broke off: ${code}.`, waitMs: undefined }
  }
  const minimax = numberMember(member(chunk, 'base_resp'), 'status_code')
  if (minimax !== undefined && minimax !== 0) return readFailure(member(chunk, 'base_resp'))
  if (first !== undefined) return undefined
  const thrown = exceptionIn(chunk)
  if (thrown !== undefined) return readFailure(thrown)
  if (inErrorEvent || looksLikeError(chunk)) return readFailure(chunk)
  return undefined
}

/** `error: null`, `""`, `false` and `{}` are how some say that there is none. */
function isError(error: unknown): boolean {
  if (isObject(error)) return Object.keys(error).length > 0
  if (Array.isArray(error)) return error.length > 0
  if (typeof error === 'number') return error >= 400
  return typeof error === 'string' && error !== ''
}

/** An exception of AWS under its own name, or the fault of a gateway, as the only member. */
function exceptionIn(chunk: unknown): JsonObject | undefined {
  const [[name, inner] = ['', undefined], ...others] = isObject(chunk) ? Object.entries(chunk) : []
  if (others.length > 0 || !/exception$|^fault$/i.test(name) || !isObject(inner)) return undefined
  return { type: name, message: messageIn(inner) ?? textMember(inner, 'faultstring') ?? name }
}

/** Codes and states with which nothing is wrong: iFlytek's success on every frame, a proxy's place in the queue. */
const FINE =
  /^(?:0+|2\d\d|success|ok|ping|heartbeat|queued|pending|started|running|processing|in_?progress)$/i

/** A chunk without choices that talks about itself. */
function looksLikeError(chunk: unknown): boolean {
  if (!isObject(chunk) || isObject(chunk['usage'])) return false
  if (chunk['object'] === 'error' || chunk['type'] === 'error') return true
  if (isError(chunk['detail']) || isError(chunk['errors'])) return true
  if (chunk['error'] === true || chunk['success'] === false) return true
  if (!WORD_MEMBERS.some((name) => textMember(chunk, name) !== undefined)) return false
  // A type alone may be a notice ("status", "queue").
  const type = textMember(chunk, 'type') ?? textMember(chunk, '__type') ?? ''
  if (/error|exception|fail|invalid|limit|overload/i.test(type)) return true
  return ['code', 'status', 'status_code', 'error_code'].some((name) => {
    const code = chunk[name]
    return (typeof code === 'string' || typeof code === 'number') && !FINE.test(String(code))
  })
}

/** Codes and words from an error in any of its shapes: `{error: …}`, `{message, code}`, `{detail}`, a text. */
function readFailure(value: unknown): ProviderFailure {
  const list = firstOf(value)
  const outer = firstOf(
    ['error', 'errors', 'base_resp'].map((name) => member(list, name)).find(isError) ?? list,
  )
  // A proxy that wraps an error in one of its own.
  const inner = outer !== list && isError(member(outer, 'error')) ? member(outer, 'error') : outer
  if (typeof inner === 'number') return { status: inner, code: '', message: '', waitMs: retryInfo(list) }
  if (typeof inner === 'string') {
    return {
      status: statusOf(list),
      code: '',
      message: plainText(inner),
      waitMs: retryInfo(list) ?? waitFromWords(inner),
    }
  }
  const codes = ['code', 'type', '__type', 'status', 'error_code'].flatMap((name) => {
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
    waitMs:
      retryInfo(inner) ?? retryInfo(list) ?? waitFromWords(raw === undefined ? message : `${message} ${raw}`),
  }
}

function firstOf(value: unknown): unknown {
  return Array.isArray(value) ? (value as unknown[])[0] : value
}

const WORD_MEMBERS = ['message', 'msg', 'detail', 'status_msg', 'error_msg', 'error_message', 'title']

function messageIn(value: unknown): string | undefined {
  for (const name of WORD_MEMBERS) {
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

/** One line of bounded length, also of an HTML page. */
function plainText(text: string): string {
  const title = /<title>([^<]*)<\/title>/i.exec(text)?.[1]
  const words = (title ?? text.replaceAll(/<[^>]*>/g, ' ')).replaceAll(/\s+/g, ' ').trim()
  return words.length > 400 ? `${words.slice(0, 400)}…` : words
}
