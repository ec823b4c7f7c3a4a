import { forbidden } from './refusal.ts'

/**
 * Parse JSON that is exactly what `JSON.stringify` writes of its value, and refuse any other
 * spelling of it.
 *
 * The engine's own parser takes keys whatever their case and lets the last of two win, so two
 * readers of one text could see two different requests. Text that survives the way there and back
 * has one reading only: no key twice at any depth, no white space, no second spelling of a number
 * or a letter.
 */
export function parseCanonical(text: string): unknown {
  let value: unknown
  let canonical: string | undefined
  try {
    value = JSON.parse(text)
    canonical = JSON.stringify(value)
  } catch (error) {
    // What is parsed without a stack may be too deep to be written with one.
    throw forbidden(error instanceof RangeError ? 'the body is nested too deep' : 'the body is not JSON')
  }
  if (canonical !== text)
    throw forbidden(
      'the body is not canonical JSON: a key is there twice, or it is not as JSON.stringify writes it',
    )
  return value
}

/**
 * Where two JSON values differ first, for example `.HostConfig.Privileged`; undefined when they do
 * not.
 */
export function firstDifference(a: unknown, b: unknown, path = ''): string | undefined {
  if (isBranch(a) && isBranch(b) && Array.isArray(a) === Array.isArray(b)) {
    const keys = new Set([...Object.keys(a), ...Object.keys(b)])
    for (const key of keys) {
      const inner = `${path}.${key}`
      // An own key only: `__proto__` and the like must not be found by inheritance.
      if (!Object.hasOwn(a, key) || !Object.hasOwn(b, key)) return inner
      const found = firstDifference(a[key], b[key], inner)
      if (found !== undefined) return found
    }
    return undefined
  }
  return Object.is(a, b) ? undefined : path || '.'
}

function isBranch(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
