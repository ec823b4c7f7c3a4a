/**
 * Text that every store, model and provider accepts: well-formed UTF-16 without U+0000. PostgreSQL
 * has no such character, and half a surrogate pair has no UTF-8 form.
 */
import { z } from 'zod'

export const WITHOUT_NUL = /^[^\0]*$/

export function storableText(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed()
  return whole.includes('\0') ? whole.replaceAll('\0', '') : whole
}

/** Limits the recursion over received values, here and in later code. */
const MAX_DEPTH = 200
const TOO_DEEP = z.never({ error: `is nested deeper than ${MAX_DEPTH} levels` })

/**
 * The same for every string in a JSON value, including names. Members stay in order. A clean value
 * is returned unchanged: large ones are checked often and rarely need cleaning.
 */
export function storableJson(value: unknown): unknown {
  if (typeof value === 'string') return storableText(value)
  if (Array.isArray(value)) {
    const cleaned = value.map(storableJson)
    return cleaned.every((inner, index) => Object.is(inner, value[index])) ? value : cleaned
  }
  if (typeof value !== 'object' || value === null) return value
  // Set from the first unclean member on.
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
 * A received value, cleaned. It has to match the schema before as well: a shape that refuses
 * U+0000, like a command's, must not get a text other than the one sent.
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
