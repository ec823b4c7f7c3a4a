/**
 * JSON numbers that JavaScript's own would change (`1234567890123456789`). Such a number is stored
 * and sent as `{"sandlot/number": "1234567890123456789"}`, which every parser keeps, also that of a
 * browser, of another program and of the version before; its digits are written again where the
 * value goes to a tool, to a model or to a reader.
 */

const NAME = 'sandlot/number'

interface ExactNumber {
  readonly [NAME]: string
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
/** At most 15 significant digits in the range of a double come back as they were written. */
const MAY_CHANGE = /[\d.]{16}|\d[eE][+-]?\d{3}/
/** Cannot match within a JSON string, where a quote has a backslash before it. */
const WRITTEN = /\{\s*"sandlot\/number":\s*"(-?\d[\d.eE+-]*)"\s*\}/g

/** False for nearly every text: only where it is true does exactness cost anything. */
export function mayChange(json: string): boolean {
  return MAY_CHANGE.test(json)
}

/** As `JSON.parse`, but for numbers that would change. Throws what it throws. */
export function parseExactly(text: string): unknown {
  return (mayChange(text) ? JSON.parse(text, exactly) : JSON.parse(text)) as unknown
}

function exactly(_name: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number') return value
  // Browsers of before 2025 do not give it.
  const source = context?.source ?? String(value)
  if (context?.source === undefined && Math.abs(value) > Number.MAX_SAFE_INTEGER)
    throw new SyntaxError(`${source} may have had more digits. Put the number into double quotes.`)
  return changes(source) ? { [NAME]: source } : value
}

/** As `JSON.stringify`, with all digits of exact numbers. */
export function stringifyExactly(value: unknown, indent?: number): string | undefined {
  const json = JSON.stringify(value, null, indent) as string | undefined
  return json === undefined ? undefined : withDigits(json)
}

/** JSON text with the digits in place of the exact numbers in it. */
export function withDigits(json: string): string {
  if (!json.includes(NAME)) return json
  return json.replaceAll(WRITTEN, (written, digits: string) => (changes(digits) ? digits : written))
}

export function isExactNumber(value: unknown): value is ExactNumber {
  if (typeof value !== 'object' || value === null || !(NAME in value)) return false
  const digits = value[NAME]
  return Object.keys(value).length === 1 && typeof digits === 'string' && changes(digits)
}

/**
 * A copy in which `read` gives what stands for each exact number. `path`: the names that lead
 * there.
 */
export function mapExactNumbers(
  value: unknown,
  read: (digits: string, path: readonly string[]) => unknown,
  path: readonly string[] = [],
): unknown {
  if (isExactNumber(value)) return read(value[NAME], path)
  if (typeof value !== 'object' || value === null) return value
  const inner = Object.entries(value).map(([name, one]): [string, unknown] => [
    name,
    mapExactNumbers(one, read, [...path, name]),
  ])
  return Array.isArray(value) ? inner.map(([, one]) => one) : Object.fromEntries(inner)
}

/** A copy with the nearest JavaScript number for each, for what only measures them. */
export function withNearest(value: unknown): unknown {
  return mapExactNumbers(value, Number)
}

/**
 * True when JavaScript's number is another one; how it is written (`1.0`, `-0`) does not matter.
 */
function changes(source: string): boolean {
  return NUMBER.test(source) && decimalOf(source) !== decimalOf(String(Number(source)))
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
