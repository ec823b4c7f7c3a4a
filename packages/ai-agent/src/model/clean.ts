/**
 * What no provider takes and no database keeps: halves of surrogate pairs and NUL. Text that is well is returned as it
 * is, so that a request of clean text costs one native look at each string.
 */
import { isObject } from './json.ts'

export function cleanText(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed()
  return whole.includes('\0') ? whole.replaceAll('\0', '') : whole
}

/**
 * The same for every string in a JSON value, names included. The order of members stays. A value that is well is returned
 * as it is: a long history is looked at with each request, and hardly ever has anything to clean.
 */
export function cleanJson(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (Array.isArray(value)) {
    const cleaned = value.map(cleanJson)
    return cleaned.every((inner, index) => inner === value[index]) ? value : cleaned
  }
  if (!isObject(value)) return value
  const names = Object.keys(value)
  // From the first member that is not well; undefined while all are.
  let members: [string, unknown][] | undefined
  for (const [index, name] of names.entries()) {
    const member: [string, unknown] = [cleanText(name), cleanJson(value[name])]
    if (members === undefined && member[0] === name && member[1] === value[name]) continue
    members ??= names.slice(0, index).map((before) => [before, value[before]])
    members.push(member)
  }
  return members === undefined ? value : Object.fromEntries(members)
}
