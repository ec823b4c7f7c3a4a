/**
 * Text that every store, model and provider takes: well-formed UTF-16 without U+0000. PostgreSQL
 * has no such character, and half a surrogate pair is no text in UTF-8.
 */
import { z } from 'zod'

export const WITHOUT_NUL = /^[^\0]*$/

export function storableText(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed()
  return whole.includes('\0') ? whole.replaceAll('\0', '') : whole
}

/** Of what arrives: it is walked through recursively, here and further on. */
const MAX_DEPTH = 200
const TOO_DEEP = z.never({ error: `is nested deeper than ${MAX_DEPTH} levels` })

/**
 * The same for every string in a JSON value, names included. The order of members stays. A value
 * that is well is returned as it is: large ones are checked often, and hardly ever have anything to
 * clean.
 */
export function storableJson(value: unknown): unknown {
  if (typeof value === 'string') return storableText(value)
  if (Array.isArray(value)) {
    const cleaned = value.map(storableJson)
    return cleaned.every((inner, index) => Object.is(inner, value[index])) ? value : cleaned
  }
  if (typeof value !== 'object' || value === null) return value
  // From the first member that is not well; undefined while all are.
  let members: [string, unknown][] | undefined
  const all = Object.entries(value)
  for (const [index, [name, before]] of all.entries()) {
    const member: [string, unknown] = [storableText(name), storableJson(before)]
    if (members === undefined && member[0] === name && Object.is(member[1], before)) continue
    members ??= all.slice(0, index)
    members.push(member)
  }
  return members === undefined ? value : Object.fromEntries(members)
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(levels - 1, inner))
}

/**
 * What arrives from outside, cleaned. It has to fit before as well: a shape that refuses U+0000, as
 * that of a command, must not get another text than was sent.
 */
export function parseStorable<S extends z.ZodType>(
  shape: S,
  value: unknown,
): z.ZodSafeParseResult<z.output<S>> {
  if (isDeeperThan(MAX_DEPTH, value)) return TOO_DEEP.safeParse(value)
  const parsed = shape.safeParse(value)
  const cleaned = storableJson(value)
  return !parsed.success || cleaned === value ? parsed : shape.safeParse(cleaned)
}
