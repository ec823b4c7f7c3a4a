/**
 * JSON as models write it. What is wrong in its syntax alone is put right: the text is rewritten as
 * strict JSON and parsed as such, so no value is ever made up here, and no number loses digits.
 * What could be read in two ways is refused, with its place.
 */
import { parseExactly } from '@sandlot/shared/base/exact-numbers'
import { parseExactJson } from './json.ts'

type LenientJson =
  | { ok: true; value: unknown }
  | { ok: false; kind: 'truncated' | 'malformed'; problem: string }

/** Levels of arrays and objects. A tool's arguments have a handful. */
const MAX_DEPTH = 200
/** Characters of the text that a problem quotes. */
const QUOTED_CHARS = 24

/**
 * The value of `text`, in time linear in its length. Mended are: raw control characters in strings
 * (line ends, tabs), trailing commas, unquoted keys, single quotes round a text without quotes,
 * `True`, `False` and `None`, and escapes that JSON does not have, which are kept as the two
 * characters that they are. `truncated`: the text ends within the value. `problem` is for the
 * model: where it is, what stands there, and how to write it. Never throws.
 */
export function parseLenient(text: string): LenientJson {
  const strict = parseExactJson(text)
  if (strict.ok) return { ok: true, value: strict.value }
  const reader = new Reader(text)
  try {
    return { ok: true, value: parseExactly(reader.strict()) }
  } catch (error) {
    if (!(error instanceof JsonProblem)) throw error
    const { kind, message } = error
    return { ok: false, kind, problem: `${placeIn(text, error.at)}: ${message}` }
  }
}

class JsonProblem extends Error {
  override name = 'JsonProblem'
  readonly at: number
  readonly kind: 'truncated' | 'malformed'

  constructor(at: number, message: string, kind: 'truncated' | 'malformed' = 'malformed') {
    super(message)
    this.at = at
    this.kind = kind
  }
}

const WORDS: ReadonlyMap<string, string> = new Map([
  ['true', 'true'],
  ['false', 'false'],
  ['null', 'null'],
  ['True', 'true'],
  ['False', 'false'],
  ['None', 'null'],
])

const SPACE = /[ \t\n\r]*/y
const WORD = /[A-Za-z_$][\w$]*/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
// oxlint-disable-next-line no-control-regex -- JSON wants them escaped
const PLAIN = /[^"'\\\0-\x1f]+/y
const UNICODE_ESCAPE = /u[0-9a-fA-F]{4}/y

/** Reads one value and writes it again as strict JSON. */
class Reader {
  readonly #text: string
  readonly #out: string[] = []
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  strict(): string {
    this.#value(0)
    this.#space()
    if (this.#at < this.#text.length)
      this.#fail('more text follows the value. Send one value and nothing else.')
    return this.#out.join('')
  }

  #value(depth: number): void {
    this.#space()
    const char = this.#text[this.#at]
    if (char === '{') return this.#members('{', '}', depth, () => this.#member(depth))
    if (char === '[') return this.#members('[', ']', depth, () => this.#value(depth + 1))
    if (char === '"' || char === "'") return this.#string(char)
    if (char === undefined) this.#cut()
    const number = this.#match(NUMBER)
    if (number !== undefined) return this.#number(number)
    const word = this.#match(WORD)
    const known = word === undefined || this.#glued() ? undefined : WORDS.get(word)
    if (known === undefined) {
      this.#at -= word?.length ?? 0
      if (this.#text.startsWith('//', this.#at) || this.#text.startsWith('/*', this.#at) || char === '#')
        this.#fail('JSON has no comments. Leave them out.')
      this.#fail(
        'this is no JSON value. Put text into double quotes; other values are numbers, true, false and null.',
      )
    }
    this.#out.push(known)
  }

  /** `open`, items with a comma between and perhaps behind them, `close`. */
  #members(open: string, close: string, depth: number, item: () => void): void {
    if (depth >= MAX_DEPTH) this.#fail(`arrays and objects may be nested ${MAX_DEPTH} deep.`)
    this.#at++
    this.#out.push(open)
    for (let first = true; ; first = false) {
      this.#space()
      if (this.#text[this.#at] === close) break
      if (!first) this.#out.push(',')
      item()
      this.#space()
      const next = this.#text[this.#at]
      if (next === close) break
      if (next === undefined) this.#cut()
      if (next !== ',')
        this.#fail(`a comma or ${close} is missing here. A double quote within a text is written \\".`)
      this.#at++
    }
    this.#at++
    this.#out.push(close)
  }

  #member(depth: number): void {
    const char = this.#text[this.#at]
    if (char === '"' || char === "'") this.#string(char)
    else {
      if (char === undefined) this.#cut()
      const name = this.#match(WORD)
      if (name === undefined) this.#fail('a name in double quotes must stand here.')
      this.#out.push(JSON.stringify(name))
    }
    this.#space()
    const next = this.#text[this.#at]
    if (next === undefined) this.#cut()
    if (next !== ':') this.#fail('a colon must stand behind the name.')
    this.#at++
    this.#out.push(':')
    this.#value(depth + 1)
  }

  #number(number: string): void {
    // `010`, `1.`, `0x10`, `1_000`: each can be read in two ways.
    if (this.#glued()) {
      this.#at -= number.length
      this.#fail('this is no JSON number. Write it in decimal digits, or put text into double quotes.')
    }
    this.#out.push(number)
  }

  /** True when the next character belongs to the value before it. */
  #glued(): boolean {
    return /[\w$.+-]/.test(this.#text[this.#at] ?? '')
  }

  #string(quote: string): void {
    const from = this.#at++
    this.#out.push('"')
    let illegal: number | undefined
    let ambiguous = false
    for (;;) {
      this.#out.push(this.#match(PLAIN) ?? '')
      const char = this.#text[this.#at]
      if (char === undefined) this.#cut()
      if (char === quote) break
      if (char === "'") this.#out.push(char)
      else if (char === '"')
        this.#fail('put the text into double quotes, and write each double quote in it as \\".')
      else if (char === '\\') {
        const escape = this.#escape(quote)
        if (escape === 'illegal') illegal ??= this.#at
        else ambiguous ||= escape === 'b' || escape === 'f'
      } else this.#out.push(JSON.stringify(char).slice(1, -1))
      this.#at++
    }
    this.#at++
    this.#out.push('"')
    if (illegal !== undefined && ambiguous) {
      this.#at = from
      this.#fail(
        'the backslashes of this text can be read in two ways. Write each backslash that is meant as \\\\.',
      )
    }
  }

  /**
   * At a backslash; afterwards at the last character of the escape. Returns its letter, or that
   * JSON has none such.
   */
  #escape(quote: string): string {
    const letter = this.#text[this.#at + 1]
    if (letter === undefined) this.#cut()
    if (quote === "'" && (letter === "'" || letter === '"'))
      this.#fail('put the text into double quotes, and write each double quote in it as \\".')
    if (letter === 'u') {
      this.#at++
      const code = this.#match(UNICODE_ESCAPE)
      if (code === undefined) {
        this.#at--
        if (/^\\u[0-9a-fA-F]{0,3}$/.test(this.#text.slice(this.#at, this.#at + 6))) this.#cut()
        this.#fail('four hexadecimal digits must follow \\u. Write a backslash that is meant as \\\\.')
      }
      this.#out.push('\\', code)
      this.#at--
      return 'u'
    }
    if ('"\\/bfnrt'.includes(letter)) {
      this.#out.push('\\', letter)
      this.#at++
      return letter
    }
    this.#out.push('\\\\')
    // The character behind it is read as any other.
    return 'illegal'
  }

  #space(): void {
    this.#match(SPACE)
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found !== undefined) this.#at += found.length
    return found
  }

  #fail(message: string): never {
    throw new JsonProblem(this.#at, message)
  }

  #cut(): never {
    throw new JsonProblem(this.#text.length, 'the text ends within the value.', 'truncated')
  }
}

/** `line 2, column 7 (near "…")`, both counted from 1. */
function placeIn(text: string, at: number): string {
  const before = text.slice(0, at)
  const line = before.split('\n').length
  const column = at - before.lastIndexOf('\n')
  const near = text.slice(at, at + QUOTED_CHARS)
  return `Line ${line}, column ${column}${near === '' ? '' : ` (at ${JSON.stringify(near)})`}`
}
