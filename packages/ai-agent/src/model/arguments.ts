/** The arguments of one call, from the pieces in which a provider sends them to what may be run. */
import { stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import { JsonScanner, isObject, parseExactJson } from './json.ts'
import { parseLenient } from './lenient-json.ts'
import type { ModelCall } from './model.ts'

type ReadArguments = Pick<ModelCall, 'args' | 'invalid'>

/** Members that hold arguments; all but the first are of models and proxies that mix the forms. */
export const ARGUMENTS_MEMBERS: readonly string[] = ['arguments', 'parameters', 'args', 'input']

/**
 * Arguments are shown again when they have grown by so many characters, or by a part of what is
 * there if that is more.
 */
const GROWN_CHARS = 256
const GROWN_PART = 1 / 64

/** Gathers pieces of text, or an object where the provider sends one. */
export class ArgumentsBuffer {
  #pieces: string[] = []
  #length = 0
  #scanner = new JsonScanner()
  #object: Record<string, unknown> | undefined
  #other: unknown
  /** Memoized parse: canonical JSON, or false if invalid. */
  #value: string | false | undefined
  /** Characters when it was shown last; undefined: not yet. */
  #shownAt: number | undefined

  /** True when any argument has arrived. */
  get begun(): boolean {
    return this.#object !== undefined || this.#other !== undefined || this.#scanner.begun
  }

  /** True when what arrived is a whole value. */
  get complete(): boolean {
    return this.#object !== undefined || this.#scanner.complete
  }

  /**
   * True when what arrived is an empty object, which may stand for arguments that are still to
   * come.
   */
  get empty(): boolean {
    if (this.#object !== undefined) return isEmptyObject(this.#object)
    return this.#pieces.length === 1 && /^\s*\{\s*\}\s*$/.test(this.#pieces[0] ?? '')
  }

  get text(): string {
    return this.#pieces.join('')
  }

  /**
   * The text so far, whatever form it was sent in, when it has grown noticeably since it was taken
   * last; undefined when it has not.
   */
  takeGrown(): string | undefined {
    const [length, before] = [this.#length, this.#shownAt]
    if (!this.begun) return undefined
    if (before !== undefined && length - before < Math.max(GROWN_CHARS, before * GROWN_PART)) return undefined
    this.#shownAt = length
    const whole = this.#object ?? this.#other
    return whole === undefined ? this.text : (stringifyExactly(whole) ?? '')
  }

  /** `piece` as it stood in the stream: text, an object, null, or a mistake. */
  push(piece: unknown): void {
    if (piece === '') return
    this.#value = undefined
    if ((isObject(piece) || (typeof piece === 'string' && /^\s*\{/.test(piece))) && this.empty) {
      this.#object = undefined
      this.#pieces = []
      this.#length = 0
      this.#scanner = new JsonScanner()
    }
    if (typeof piece === 'string') {
      this.#pieces.push(piece)
      this.#length += piece.length
      this.#scanner.push(piece)
    } else if (isObject(piece)) {
      this.#object = piece
    } else if (piece !== undefined && piece !== null) {
      this.#other = piece
    }
  }

  /** True if `piece` repeats the value that is here: a provider that flushes twice. */
  repeats(piece: unknown): boolean {
    if (!this.complete) return false
    if (isObject(piece)) return this.#object !== undefined && sameJson(this.#object, piece)
    if (typeof piece !== 'string' || !/^\s*\{[^]*\}\s*$/.test(piece)) return false
    this.#value ??= this.#oneValue()
    if (this.#value === false) return false
    const again = parseExactJson(piece)
    return again.ok && this.#value === JSON.stringify(again.value)
  }

  /** If every delta is the whole object, grown, nothing is joined or parsed again for each. */
  #oneValue(): string | false {
    if (this.#scanner.followed) return false
    const mine = parseExactJson(this.text)
    return mine.ok && JSON.stringify(mine.value)
  }

  /**
   * The last piece, if it is the whole value that the pieces before it began, in one or each by
   * itself.
   */
  #wholeAtLast(): string | undefined {
    const pieces = this.#pieces.filter((piece) => piece.trim() !== '')
    const last = pieces.pop()
    if (last === undefined || pieces.length === 0 || !/^\s*\{[^]*\}\s*$/.test(last)) return undefined
    if (!parseExactJson(last).ok || parseExactJson(this.text).ok) return undefined
    const grown = pieces.every((piece) => last.startsWith(piece)) || last.startsWith(pieces.join(''))
    return grown ? last : undefined
  }

  /** The call's arguments. `cut`: the provider reported that the answer was cut by its length. */
  read(cut: boolean): ReadArguments {
    if (this.#object !== undefined) return { args: this.#object }
    if (this.#other !== undefined) return { args: stringifyExactly(this.#other) ?? '', invalid: 'not_object' }
    const { text } = this
    const whole = this.#wholeAtLast()
    if (whole !== undefined) return readArguments(whole, cut)
    const read = readArguments(text, cut)
    const { end } = this.#scanner
    if (read.invalid === undefined || end === undefined || text.trimStart().startsWith('```')) return read
    if (text.slice(end).trim() === '' && !PLACEHOLDER.test(text)) return read
    const only = onlyValue(text, cut)
    return only === undefined
      ? { args: text, invalid: cut ? 'truncated' : 'malformed' }
      : readArguments(only, cut)
  }
}

/** Arguments of a call that came as one text, as `ArgumentsBuffer` reads them. */
export function readWholeArguments(text: string): ReadArguments {
  const buffer = new ArgumentsBuffer()
  buffer.push(text)
  return buffer.read(false)
}

/** The text `null` before a value. */
const PLACEHOLDER = /^\s*null\s*(?=\S)/

/**
 * The one value of a text in which something follows it: the same value flushed again, a value
 * behind a placeholder (`{}`, `""`, `null`), or one before what can be no part of it (`isRemark`).
 * Undefined when there are two values, or when more of the value may follow. `cut`: as for
 * `readArguments`.
 */
function onlyValue(text: string, cut: boolean): string | undefined {
  let only: { text: string; value: unknown } | undefined
  let rest = text.trim()
  while (rest !== '' && (only === undefined || /["{[]/.test(rest))) {
    rest = rest.replace(PLACEHOLDER, '')
    const scanner = new JsonScanner()
    scanner.push(rest)
    const next = rest.slice(0, scanner.end)
    const parsed = parseExactJson(next)
    if (!parsed.ok) return undefined
    rest = rest.slice(next.length).trim()
    if (only === undefined || isPlaceholder(only.value)) only = { text: next, value: parsed.value }
    else if (!isPlaceholder(parsed.value) && !sameJson(only.value, parsed.value)) return undefined
  }
  return rest === '' || (!cut && isRemark(rest)) ? only?.text : undefined
}

/**
 * True for what a model writes behind its arguments: brackets too many, a control token, words. A
 * comma, a colon or an equals sign may begin arguments that a bracket set too early has left
 * outside, and a comment may hold some.
 */
function isRemark(rest: string): boolean {
  if (/^[}\]\s]*(?:\/[/*]|#)/.test(rest)) return false
  return /^[}\]\s]*(?:<\|[^]*|[^,:=}\]\s][^:=]*)?$/.test(rest)
}

/** Arguments as one text. Never throws; what must not run is flagged and keeps its text. */
export function readArguments(text: string, cut: boolean): ReadArguments {
  const trimmed = withoutFence(text)
  // Servers in Python and JavaScript write this for no arguments at all.
  if (/^(?:None|undefined)$/.test(trimmed)) return { args: {} }
  if (trimmed === '') return cut ? { args: text, invalid: 'truncated' } : { args: {} }
  const parsed = parseLenient(trimmed)
  if (parsed.ok && !cut) return fromValue(parsed.value, text)
  // For a cut answer, only text that is complete as it stands.
  const whole = cut ? parseExactJson(trimmed) : undefined
  if (whole?.ok === true) return fromValue(whole.value, text)
  if (!/^[{["]/.test(trimmed)) return { args: text, invalid: 'malformed' }
  if (parsed.ok || cut) return { args: text, invalid: 'truncated' }
  // Brackets that were never closed: half of the arguments, whatever else is wrong. After an inner
  // quote only the last character decides.
  const scanner = new JsonScanner()
  scanner.push(trimmed)
  const closed = scanner.complete || /[}\]]$/.test(trimmed)
  return { args: text, invalid: closed ? parsed.kind : 'truncated' }
}

/**
 * The error in arguments that `readArguments` calls malformed or no object, for the model;
 * undefined where it has no details.
 */
export function argumentsProblem(text: string): string | undefined {
  const parsed = parseLenient(withoutFence(text))
  if (parsed.ok && typeof parsed.value === 'string') {
    const inner = parseLenient(parsed.value)
    if (inner.ok) return kindProblem(inner.value)
    return inner.kind === 'truncated' ? undefined : `In the text that was sent: ${inner.problem}`
  }
  if (parsed.ok) return kindProblem(parsed.value)
  return parsed.kind === 'truncated' ? undefined : parsed.problem
}

/** The kind of a value that is no object; undefined for one. */
export function kindProblem(value: unknown): string | undefined {
  return isObject(value) ? undefined : `It was ${Array.isArray(value) ? 'an array' : `a ${typeof value}`}.`
}

const FENCE = /^```[A-Za-z0-9]*\s/

/** Some models put their arguments into a block of code. */
function withoutFence(text: string): string {
  const trimmed = text.trim()
  const opening = FENCE.exec(trimmed)?.[0]
  if (opening === undefined || !trimmed.endsWith('```') || trimmed.length < opening.length + 3) return trimmed
  return trimmed.slice(opening.length, -3).trim()
}

function fromValue(value: unknown, text: string): ReadArguments {
  if (value === null) return { args: {} }
  if (isObject(value)) return { args: value }
  if (typeof value !== 'string') return { args: text, invalid: 'not_object' }
  // A JSON string in a string is decoded once.
  if (value.trim() === '') return { args: {} }
  const inner = parseLenient(value)
  if (inner.ok && isObject(inner.value)) return { args: inner.value }
  return { args: text, invalid: inner.ok ? 'not_object' : inner.kind }
}

function isEmptyObject(value: unknown): boolean {
  return isObject(value) && Object.keys(value).length === 0
}

function isPlaceholder(value: unknown): boolean {
  return value === '' || isEmptyObject(value)
}

function sameJson(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
