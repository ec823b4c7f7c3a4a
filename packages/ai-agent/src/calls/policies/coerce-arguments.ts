/**
 * Models write `"5"` for 5, `"true"` for true, JSON text for a list, and null for what they leave
 * out. Where the schema wants the one and got exactly the other, it is read; nothing else is
 * guessed.
 */
import { isExactNumber, parseExactly, stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import type { z } from 'zod'
import { propertiesOf } from '../../tools/tool-schema.ts'

export interface CoercedArguments {
  args: Record<string, unknown>
  /** One line for the model per value that was read as something else. */
  notes: string[]
}

/**
 * A copy of `args` with the values at `invalid_type` issues read as the type that was expected,
 * where they spell one.
 */
export function coerceArguments(args: Record<string, unknown>, error: z.ZodError): CoercedArguments {
  const copy = structuredClone(args)
  const notes: string[] = []
  for (const issue of error.issues) {
    if (issue.code !== 'invalid_type') continue
    const holder = parentOf(copy, issue.path)
    const key = issue.path.at(-1)
    if (holder === undefined || key === undefined) continue
    const text = Reflect.get(holder, key) as unknown
    // A required member is then reported as missing.
    if (text === null && !Array.isArray(holder)) Reflect.deleteProperty(holder, key)
    const value = typeof text === 'string' ? readAs(issue.expected, text) : undefined
    if (value === undefined) continue
    Reflect.set(holder, key, value)
    notes.push(readNote(issue.path.join('.'), value))
  }
  return { args: copy, notes }
}

/**
 * The same for a JSON Schema, whose own properties only are looked at. `args` are left as they are.
 */
export function coerceToSchema(
  args: Record<string, unknown>,
  schema: Record<string, unknown>,
): CoercedArguments {
  const properties = propertiesOf(schema)
  const copy = { ...args }
  const notes: string[] = []
  for (const [name, text] of Object.entries(args)) {
    const wanted = Object.hasOwn(properties, name) ? typesOf(properties[name]) : []
    if (text === null && wanted.length > 0 && !wanted.includes('null')) delete copy[name]
    const [type, another] = wanted.filter((one) => one !== 'null')
    if (typeof text !== 'string' || type === undefined || another !== undefined) continue
    const value = readAs(type === 'integer' ? 'int' : type, text)
    if (value === undefined) continue
    copy[name] = value
    notes.push(readNote(name, value))
  }
  return { args: copy, notes }
}

/**
 * The types that a property's schema names, itself or in the alternatives it gives; none where it
 * does not say.
 */
function typesOf(property: unknown): string[] {
  if (typeof property !== 'object' || property === null) return []
  const { type, anyOf, oneOf } = property as Record<string, unknown>
  if (typeof type === 'string') return [type]
  const several = [type, anyOf, oneOf].find(Array.isArray) ?? []
  const types = several.flatMap((one: unknown) => (typeof one === 'string' ? [one] : typesOf(one)))
  return types.length < several.length ? [] : types
}

function readNote(name: string, value: unknown): string {
  return `[The argument ${name} was text and was read as ${describe(value)}.]`
}

function parentOf(root: object, path: readonly PropertyKey[]): object | undefined {
  let holder: unknown = root
  for (const key of path.slice(0, -1)) {
    holder = typeof holder === 'object' && holder !== null ? (Reflect.get(holder, key) as unknown) : undefined
  }
  return typeof holder === 'object' && holder !== null ? holder : undefined
}

function readAs(expected: string, text: string): unknown {
  const trimmed = text.trim()
  if (expected === 'number' || expected === 'int') return readNumber(trimmed)
  if (expected === 'boolean') return { true: true, false: false }[trimmed.toLowerCase()]
  if (expected !== 'array' && expected !== 'object') return undefined
  try {
    const value = parseExactly(trimmed)
    const isArray = Array.isArray(value)
    if (typeof value !== 'object' || value === null) return undefined
    return isArray === (expected === 'array') ? value : undefined
  } catch {
    return undefined
  }
}

/** Only JSON's form: `010` can be read in two ways. */
function readNumber(text: string): unknown {
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text) ? parseExactly(text) : undefined
}

function describe(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (isExactNumber(value)) return `the number ${stringifyExactly(value)}`
  return typeof value === 'object' ? 'an object' : `the ${typeof value} ${JSON.stringify(value)}`
}
