/** A call's arguments for people, complete: arguments without a special form are shown as JSON. */
import { stringifyExactly } from '../base/exact-numbers.ts'

export interface ShownField {
  name: string
  text: string
  /** Too long to fit next to its name. */
  long: boolean
}

interface ShownArguments {
  /** The command line, if there is one. */
  command?: string
  fields: ShownField[]
  /** The model's own text if it was not an object. */
  raw?: string
}

export function shownArguments(rawInput: unknown): ShownArguments {
  if (rawInput === null || rawInput === undefined) return { fields: [] }
  if (typeof rawInput !== 'object' || Array.isArray(rawInput)) {
    return { fields: [], raw: typeof rawInput === 'string' ? rawInput : toJson(rawInput) }
  }
  const fields: ShownField[] = []
  let command: string | undefined
  for (const [name, value] of Object.entries(rawInput)) {
    if (name === 'command' && typeof value === 'string') command = value
    else fields.push(field(name, value))
  }
  return command === undefined ? { fields } : { command, fields }
}

function field(name: string, value: unknown): ShownField {
  const text = typeof value === 'string' ? value : toJson(value)
  return { name, text, long: text.length > 80 || text.includes('\n') }
}

function toJson(value: unknown): string {
  return stringifyExactly(value, 2) ?? 'undefined'
}
