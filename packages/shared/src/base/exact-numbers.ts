/**
 * JSON numbers that JavaScript would change (`1234567890123456789`), stored and sent as
 * `{"sandlot/number": "1234567890123456789"}`. Every parser preserves that form, including
 * browsers, other programs and the previous version; the digits are restored for tools, models and
 * readers.
 */

const NAME = 'sandlot/number'

interface ExactNumber {
  readonly [NAME]: string
}

const NUMBER = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
/** At most 15 significant digits in the range of a double survive parsing unchanged. */
const MAY_CHANGE = /[\d.]{16}|\d[eE][+-]?\d{3}/
/** Such a number as a whole. */
const LONG = /-?(?:\d(?=[\d.]{15})[\d.]*(?:[eE][+-]?\d+)?|\d[\d.]*[eE][+-]?\d{3,})/g
/** Cannot match within a JSON string, where a quote has a backslash before it. */
const WRITTEN = /\{\s*"sandlot\/number":\s*"(-?\d[\d.eE+-]*)"\s*\}/g

/** False for nearly every text: exactness costs time only where this is true. */
export function mayChange(json: string): boolean {
  return MAY_CHANGE.test(json)
}

/**
 * Like `JSON.parse`, with exact numbers. Throws the same errors. No reviver: one that receives the
 * text of each number takes seconds for megabytes.
 */
export function parseExactly(text: string): unknown {
  if (!mayChange(text)) return JSON.parse(text) as unknown
  const parts: string[] = []
  let copied = 0
  let outside = 0
  let quote = text.indexOf('"')
  for (const { 0: source, index } of text.matchAll(LONG)) {
    while (quote !== -1 && quote < index) {
      outside = endOfString(text, quote)
      quote = text.indexOf('"', outside)
    }
    if (index < outside || !changes(source)) continue
    parts.push(text.slice(copied, index), JSON.stringify({ [NAME]: source }))
    copied = index + source.length
  }
  return JSON.parse(parts.join('') + text.slice(copied)) as unknown
}

function endOfString(text: string, quote: number): number {
  for (let end = text.indexOf('"', quote + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text[end - 1 - slashes] === '\\') slashes++
    if (slashes % 2 === 0) return end + 1
  }
  return text.length
}

/** Like `JSON.stringify`, with all digits of exact numbers. */
export function stringifyExactly(value: unknown, indent?: number): string | undefined {
  const json = JSON.stringify(value, null, indent) as string | undefined
  return json === undefined ? undefined : withDigits(json)
}

/** JSON text with digits instead of the exact numbers in it. */
export function withDigits(json: string): string {
  if (!json.includes(NAME)) return json
  return json.replaceAll(WRITTEN, (written, digits: string) => (changes(digits) ? digits : written))
}

export function isExactNumber(value: unknown): value is ExactNumber {
  if (typeof value !== 'object' || value === null || !(NAME in value)) return false
  const digits = value[NAME]
  return Object.keys(value).length === 1 && typeof digits === 'string' && changes(digits)
}

type ReadExact = (digits: string, path: readonly string[], stored: ExactNumber) => unknown

/**
 * The value with the result of `read` instead of each exact number: a copy if there are any.
 * `path`: the names that lead to it. `stored`: the exact number itself.
 */
export function mapExactNumbers(value: unknown, read: ReadExact): unknown {
  const json = JSON.stringify(value) as string | undefined
  return json?.includes(NAME) === true ? mapped(value, read, []) : value
}

function mapped(value: unknown, read: ReadExact, path: string[]): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (isExactNumber(value)) return read(value[NAME], [...path], value)
  const inner = (name: string, one: unknown): unknown => {
    path.push(name)
    const made = mapped(one, read, path)
    path.pop()
    return made
  }
  if (Array.isArray(value)) return value.map((one, place) => inner(String(place), one))
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, inner(name, one)]))
}

/** Replaces each exact number by the nearest JavaScript number, for code that only measures. */
export function withNearest(value: unknown): unknown {
  return mapExactNumbers(value, (digits) => Number(digits))
}

/** True when JavaScript's number differs in value; the notation (`1.0`, `-0`) does not matter. */
function changes(source: string): boolean {
  if (!mayChange(source) || !NUMBER.test(source)) return false
  return decimalOf(source) !== decimalOf(String(Number(source)))
}

/** The same text for the same number. */
function decimalOf(text: string): string {
  const [, sign = '', whole = '', fraction = '', power = '0'] = NUMBER.exec(text) ?? []
  const digits = whole + fraction
  let from = 0
  let to = digits.length
  while (digits[from] === '0') from++
  while (to > from && digits[to - 1] === '0') to--
  if (whole === '') return text
  return from === to
    ? '0'
    : `${sign}${digits.slice(from, to)}e${Number(power) - fraction.length + digits.length - to}`
}
