/**
 * A form for a call's arguments from its tool's JSON Schema, and what was filled in, as arguments.
 * What a form cannot show is JSON. Pure.
 */
import { parseExactly, stringifyExactly } from '@sandlot/shared/base/exact-numbers'

export interface EditField {
  name: string
  /** `text`: more than a line. `json`: a list or an object. */
  type: 'line' | 'text' | 'number' | 'boolean' | 'choice' | 'json'
  /** Set for a `choice`. */
  choices: readonly string[]
  about: string | undefined
  required: boolean
}

/** By name; a boolean is `true`, `false` or empty. */
type EditValues = Readonly<Record<string, string>>

/** An argument that is read in a monospaced field of several lines even where it has only one. */
const LONG_NAMES = new Set(['command', 'content', 'old_text', 'new_text', 'text', 'script', 'code', 'patch'])
const LONG_CHARS = 60

/** Null: there is nothing to make a form from. */
export function editFields(schema: unknown, input: unknown): EditField[] | null {
  const properties = isRecord(schema) ? schema['properties'] : undefined
  if (!isRecord(properties) || !isRecord(input)) return null
  const required = isRecord(schema) && Array.isArray(schema['required']) ? schema['required'] : []
  const names = [...new Set([...Object.keys(properties), ...Object.keys(input)])]
  if (names.length === 0) return null
  return names.map((name) => {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    return {
      name,
      ...typeOf(name, property, input[name]),
      about:
        isRecord(property) && typeof property['description'] === 'string'
          ? property['description']
          : undefined,
      required: required.includes(name),
    }
  })
}

function typeOf(name: string, property: unknown, value: unknown): Pick<EditField, 'type' | 'choices'> {
  const { type, enum: choices } = isRecord(property) ? property : {}
  if (Array.isArray(choices) && choices.every((choice) => typeof choice === 'string'))
    return { type: 'choice', choices }
  const plain = { choices: [] }
  if (type === 'boolean') return { type: 'boolean', ...plain }
  if (type === 'number' || type === 'integer') return { type: 'number', ...plain }
  const isText = value === undefined ? type === 'string' : typeof value === 'string'
  if (!isText || (type !== undefined && type !== 'string')) return { type: 'json', ...plain }
  const long = typeof value === 'string' && (value.length > LONG_CHARS || value.includes('\n'))
  return { type: LONG_NAMES.has(name) || long ? 'text' : 'line', ...plain }
}

/** Initial values of the fields. */
export function editValues(fields: readonly EditField[], input: unknown): EditValues {
  const given = isRecord(input) ? input : {}
  return Object.fromEntries(
    fields.map(({ name, type }) => [
      name,
      given[name] === undefined
        ? ''
        : typeof given[name] === 'string' && type !== 'json'
          ? given[name]
          : (stringifyExactly(given[name], type === 'json' ? 2 : undefined) ?? ''),
    ]),
  )
}

/** The filled-in arguments, or why they are none. What is empty and optional is left out. */
export function editedInput(
  fields: readonly EditField[],
  values: EditValues,
): { input: Record<string, unknown> } | { problem: string } {
  const input: Record<string, unknown> = {}
  for (const { name, type, required } of fields) {
    const text = values[name] ?? ''
    const isText = type === 'line' || type === 'text' || type === 'choice'
    if (text === '' && !(isText && required)) continue
    if (isText) {
      input[name] = text
      continue
    }
    const read = readJson(text)
    if (read === undefined)
      return { problem: `${name} is not valid ${type === 'json' ? 'JSON' : `as a ${type}`}.` }
    input[name] = read.value
  }
  return { input }
}

/** The arguments as JSON, or why the text is none. */
export function editedJson(text: string): { input: Record<string, unknown> } | { problem: string } {
  const read = readJson(text)
  if (read === undefined) return { problem: 'This is not valid JSON.' }
  return isRecord(read.value)
    ? { input: read.value }
    : { problem: 'Arguments must be a JSON object, like {"path": "a.txt"}.' }
}

/** Names of the arguments that differ, with both texts. */
export function changesOf(
  before: unknown,
  after: Readonly<Record<string, unknown>>,
): { name: string; oldText: string; newText: string }[] {
  const had = isRecord(before) ? before : {}
  return [...new Set([...Object.keys(had), ...Object.keys(after)])].flatMap((name) => {
    const [oldText, newText] = [had[name], after[name]].map(textOf) as [string, string]
    return oldText === newText ? [] : [{ name, oldText, newText }]
  })
}

function textOf(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : (stringifyExactly(value, 2) ?? '')
}

function readJson(text: string): { value: unknown } | undefined {
  try {
    return { value: parseExactly(text) }
  } catch {
    return undefined
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
