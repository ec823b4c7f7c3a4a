import { forbidden } from './refusal.ts'

/**
 * Parses JSON that equals `JSON.stringify` of its value, and refuses any other spelling.
 *
 * The engine's own parser ignores the case of keys and lets the last duplicate win, so two parsers
 * could read one text as two different requests. Text that survives the round trip has a single
 * reading: no duplicate key at any depth, no white space, no second spelling of a number or a
 * letter.
 */
export function parseCanonical(text: string): unknown {
  let value: unknown
  let canonical: string | undefined
  try {
    value = JSON.parse(text)
    canonical = JSON.stringify(value)
  } catch (error) {
    // The parser needs no stack, so the value may be too deep for the serializer.
    throw forbidden(error instanceof RangeError ? 'the body is nested too deep' : 'the body is not JSON')
  }
  if (canonical !== text)
    throw forbidden(
      'the body is not canonical JSON: a key is there twice, or it is not as JSON.stringify writes it',
    )
  return value
}

/**
 * Path of the first difference between two JSON values, for example `.HostConfig.Privileged`;
 * undefined when they are equal.
 */
export function firstDifference(a: unknown, b: unknown, path = ''): string | undefined {
  if (isBranch(a) && isBranch(b) && Array.isArray(a) === Array.isArray(b)) {
    const keys = new Set([...Object.keys(a), ...Object.keys(b)])
    for (const key of keys) {
      const inner = `${path}.${key}`
      // Own keys only: `__proto__` and the like must not be found by inheritance.
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
