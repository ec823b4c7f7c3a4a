/** Small readings of untyped JSON, for what providers send. */
import { parseExactly } from '@sandlot/shared/base/exact-numbers'

export type JsonObject = Record<string, unknown>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value of a member of something that may not be an object. */
export function member(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined
}

/** A text that is not empty. */
export function textMember(value: unknown, name: string): string | undefined {
  const found = member(value, name)
  return typeof found === 'string' && found !== '' ? found : undefined
}

/** A finite number, also from digits in a string. */
export function numberMember(value: unknown, name: string): number | undefined {
  const found = member(value, name)
  if (typeof found === 'number' && Number.isFinite(found)) return found
  return typeof found === 'string' && /^\d+$/.test(found) ? Number(found) : undefined
}

type ParsedJson = { ok: true; value: unknown } | { ok: false; error: unknown }

export function parseJson(text: string, parse: (text: string) => unknown = JSON.parse): ParsedJson {
  try {
    return { ok: true, value: parse(text) }
  } catch (error) {
    return { ok: false, error }
  }
}

/** `parseJson`, but for numbers that JavaScript would change (`exact-numbers.ts`). */
export function parseExactJson(text: string): ParsedJson {
  return parseJson(text, parseExactly)
}

/**
 * Follows JSON text that arrives in pieces and knows when its first value is complete, without
 * parsing it again at each piece. Only strings and brackets are looked at.
 */
export class JsonScanner {
  #depth = 0
  #inString = false
  #escaped = false
  #length = 0
  /** Something other than space has come. */
  begun = false
  /** The end of the first object, array or string, in characters from the beginning. */
  end: number | undefined
  /** Something other than space has come behind it. */
  followed = false

  get complete(): boolean {
    return this.end !== undefined
  }

  push(piece: string): void {
    let at = 0
    for (; at < piece.length && this.end === undefined; at++) this.#next(piece.charAt(at), at)
    this.followed ||= this.end !== undefined && /\S/.test(piece.slice(at))
    this.#length += piece.length
  }

  #next(char: string, at: number): void {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false
      else if (char === '\\') this.#escaped = true
      else if (char === '"') {
        this.#inString = false
        if (this.#depth === 0) this.end = this.#length + at + 1
      }
      return
    }
    if (char === ' ' || char === '\n' || char === '\r' || char === '\t') return
    this.begun = true
    if (char === '"') this.#inString = true
    else if (char === '{' || char === '[') this.#depth++
    else if (char === '}' || char === ']') {
      this.#depth--
      if (this.#depth <= 0) this.end = this.#length + at + 1
    }
  }
}

/** JSON text that is equal for equal values: the members of each object are sorted by name. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(canonical(value))
}

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(members.map(([name, member]) => [name, canonical(member)]))
}

/**
 * True when a JSON value is nested deeper than `levels`; a cyclic one always is. Goes level by
 * level and visits each part once a level, so neither depth nor sharing makes it expensive.
 */
export function deeperThan(value: unknown, levels: number): boolean {
  let level = new Set([value].filter(hasMembers))
  for (let depth = 0; depth < levels && level.size > 0; depth++)
    level = new Set([...level].flatMap((part) => Object.values(part)).filter(hasMembers))
  return level.size > 0
}

function hasMembers(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
