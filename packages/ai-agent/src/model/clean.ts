/**
 * What no provider takes and no database keeps: halves of surrogate pairs and NUL. Text that is well is returned as it
 * is, so that a request of clean text costs one native look at each string.
 */
import { isObject } from './json.ts'

export function cleanText(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed()
  return whole.replaceAll('\0', '')
}

/** The same for every string in a JSON value, names included. The order of members stays. */
export function cleanJson(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (Array.isArray(value)) return value.map(cleanJson)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [cleanText(name), cleanJson(inner)]))
}
