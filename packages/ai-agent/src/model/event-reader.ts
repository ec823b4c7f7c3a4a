/** Events, or a whole body, and what they mean for the answer. */
import { mapExactNumbers, mayChange, stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import { type ErrorContext, foreignAnswer, toModelError } from './errors.ts'
import { failureInChunk, failureOfResponse, waitFromWords } from './failure.ts'
import { deeperThan, isObject, JsonScanner, parseExactJson, parseJson } from './json.ts'
import { ModelError } from './model.ts'
import type { SseEvent } from './sse.ts'
import type { AnswerReader } from './wires/wire.ts'
import { ARGUMENTS_MEMBERS } from './arguments.ts'

/** Feed events, or a whole JSON body; what they say goes to the answer. */
export class EventReader {
  readonly #answer: AnswerReader
  readonly #context: ErrorContext
  /** `[DONE]` has come, the last event of the protocol, or a whole JSON body. */
  done = false
  /** An event has come. */
  begun = false

  constructor(answer: AnswerReader, context: ErrorContext) {
    this.#answer = answer
    this.#context = context
  }

  /**
   * Returns true for what counts as progress: not for pings, whether as an event, in words, or as a
   * chunk that says nothing. Throws `ModelError` for a failure.
   */
  read(event: SseEvent): boolean {
    this.begun = true
    if (this.#readPiece(event)) return true
    this.#readOther(event)
    this.done ||= this.#answer.over
    return isData(event)
  }

  /** Reads what nearly every event is, without looking for anything else. False: it is not. */
  #readPiece({ event, data }: SseEvent): boolean {
    if (event === 'error' || !data.startsWith('{')) return false
    const parsed = parseJson(data)
    const piece = parsed.ok && this.#answer.isPiece(parsed.value)
    if (!parsed.ok || piece === false) return false
    const exact = piece === 'exact' && mayChange(data) ? parseEvent(data) : parsed
    const chunk = exact.ok ? exact.value : parsed.value
    if (isObject(chunk)) this.#answer.push(chunk, event)
    return true
  }

  #readOther({ event, data, complete }: SseEvent): void {
    const inErrorEvent = event === 'error'
    const parsed = parseEvent(data)
    if (isDone(data)) {
      this.done = true
    } else if (parsed.ok) {
      this.readChunk(parsed.value, event)
    } else if (/^\s*[{[]/.test(data) && !/^\s*\[ERROR\]/i.test(data)) {
      this.#readLoosely(data, event, complete)
    } else if (inErrorEvent || (!this.#answer.finished && IN_WORDS.test(data))) {
      this.fail(data)
    }
    // Anything else is a sign of life ("ping"), or a word behind an answer that is whole.
  }

  #readLoosely(data: string, event: string, complete: boolean): void {
    const loose = looseJson(data)
    for (const value of loose?.values ?? []) this.readChunk(value, event)
    if (loose?.done === true) this.done = true
    // The cut end of a stream is for the caller, who finds it unfinished.
    if (loose !== undefined && !(loose.cut && complete)) return
    // An error may stand on a line of its own behind an event that it cut off.
    for (const line of data.split('\n')) {
      const value = parseJson(line)
      const failure = value.ok ? failureInChunk(value.value, false) : undefined
      if (failure !== undefined) throw toModelError(failure, this.#context)
    }
    if (event === 'error') this.fail(data)
    if (!complete) return
    throw new ModelError('protocol', 'The model provider sent an event that is not JSON.', {
      retryable: true,
    })
  }

  readChunk(chunk: unknown, event: string): void {
    const inErrorEvent = event === 'error'
    const failure = failureInChunk(chunk, inErrorEvent)
    if (failure !== undefined) throw toModelError(failure, this.#context)
    if (typeof chunk === 'string' && inErrorEvent) this.fail(chunk)
    if (Array.isArray(chunk)) for (const each of chunk) this.readChunk(each, event)
    if (isObject(chunk)) this.#answer.push(chunk, event)
  }

  /** A failure that the provider described in words only. */
  fail(words: string): never {
    const waitMs = waitFromWords(words)
    throw toModelError({ status: undefined, code: '', message: words, waitMs }, this.#context)
  }

  /** A body that is no event stream: a whole answer, or something else. */
  readBody(text: string): void {
    const trimmed = text.trim()
    if (trimmed.startsWith('<')) throw webPage(trimmed, this.#context)
    if (trimmed === '') return
    const parsed = parseEvent(trimmed)
    if (!parsed.ok) {
      // One JSON object a line, or a body that was cut.
      this.read({ event: '', data: trimmed, complete: false })
      return
    }
    this.readChunk(parsed.value, '')
    const whole: unknown = Array.isArray(parsed.value) ? parsed.value[0] : parsed.value
    this.#answer.checkWhole(whole, this.#context.setIn)
    this.done = true
  }
}

/**
 * The page of a proxy may say in its title what happened, under a status that says that all is
 * well.
 */
function webPage(text: string, context: ErrorContext): ModelError {
  const status = /<title>\s*([45]\d\d)\b/i.exec(text)?.[1]
  if (status !== undefined)
    return toModelError(failureOfResponse(Number(status), new Headers(), text), context)
  return foreignAnswer('a web page', context.setIn)
}

function isData({ event, data }: SseEvent): boolean {
  return event !== 'ping' && data.length > 2 && /^\s*[{[]/.test(data) && !PING.test(data)
}

/** A chunk that only keeps the connection alive. */
const PING = /^\s*\{\s*"type"\s*:\s*"(?:ping|heartbeat|keep-?alive)"|"choices"\s*:\s*\[\s*\]/i

/** A failure that some proxies write into a stream as it is; text never comes like this. */
const IN_WORDS =
  /\berror\b|exception|\bfail(?:ed|ure)\b|unavailable|overloaded|timed? ?out|too many requests|bad gateway/i

/** A call's arguments, where they are no text, keep every digit; all else is numbers to us. */
function parseEvent(text: string): ReturnType<typeof parseJson> {
  const exact = mayChange(text) ? parseExactJson(text) : undefined
  if (exact?.ok !== true || deeperThan(exact.value, MAX_DEPTH)) return parseJson(text)
  const isArgument = (path: readonly string[]): boolean =>
    path.some((name) => ARGUMENTS_MEMBERS.includes(name))
  const value = mapExactNumbers(exact.value, (digits, path, stored) =>
    isArgument(path) ? stored : Number(digits),
  )
  return { ok: true, value }
}

/** Arguments that are nested deeper do not run. */
const MAX_DEPTH = 200

// ── Events that are not one JSON value ──────────────────────────────────────────────────────────

interface LooseJson {
  values: unknown[]
  /** `[DONE]` stood among them. */
  done: boolean
  /** A value has begun and does not end. */
  cut: boolean
}

/**
 * The values of a text that is not one JSON value: several, one a line or glued together, with
 * `data:`, a comma or `[DONE]` between or behind; with `NaN`, or with control characters in its
 * strings. What comes behind them and begins no value is left out. Undefined when a value cannot be
 * read at all.
 */
function looseJson(text: string): LooseJson | undefined {
  const found: LooseJson = { values: [], done: false, cut: false }
  let rest = text
  for (;;) {
    rest = rest.replace(/^(?:\s|,|data:)+/, '')
    if (isDone(rest.slice(0, 6))) {
      found.done = true
      rest = rest.slice(6)
      continue
    }
    if (!/^[{[]/.test(rest)) return found
    const scanner = new JsonScanner()
    scanner.push(rest)
    if (scanner.end === undefined) return { ...found, cut: true }
    const value = parseNearly(rest.slice(0, scanner.end))
    if (!value.ok) return undefined
    found.values.push(value.value)
    rest = rest.slice(scanner.end)
  }
}

function isDone(text: string): boolean {
  return /^"?\[done\]"?$/i.test(text.trim())
}

/** Strings, and what some write for numbers that JSON has no name for. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\b(?:NaN|Infinity)\b/gs
/** Stands for such a number until it is known where it stood. */
const NO_NUMBER = '\0NaN'

function parseNearly(text: string): ReturnType<typeof parseJson> {
  const parsed = parseEvent(text)
  if (parsed.ok) return parsed
  const nearly = parseEvent(
    text.replaceAll(TOKENS, (token) =>
      token.startsWith('"') ? escapeControls(token) : JSON.stringify(NO_NUMBER),
    ),
  )
  return nearly.ok ? { ok: true, value: withoutNumbers(nearly.value) } : nearly
}

/**
 * Null where there is no number; but a call's arguments become the text that they were, for their
 * reader to refuse.
 */
function withoutNumbers(value: unknown): unknown {
  if (value === NO_NUMBER) return null
  if (Array.isArray(value)) return value.map(withoutNumbers)
  if (!isObject(value)) return value
  const members = Object.entries(value).map(([name, inner]) => {
    const json = ARGUMENTS_MEMBERS.includes(name) && isObject(inner) ? (stringifyExactly(inner) ?? '') : ''
    const named = json.replaceAll(JSON.stringify(NO_NUMBER), 'NaN')
    return [name, named === json ? withoutNumbers(inner) : named]
  })
  return Object.fromEntries(members)
}

function escapeControls(text: string): string {
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  return text.replaceAll(/[\0-\x1f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
