/**
 * Models write `"5"` for 5, `"true"` for true, and JSON text for a list. Where the schema wants the one and got exactly
 * the other, it is read; nothing else is guessed.
 */
import type { z } from 'zod'

export interface CoercedArguments {
  args: Record<string, unknown>
  /** One line for the model per value that was read as something else. */
  notes: string[]
}

/** A copy of `args` with the values at `invalid_type` issues read as the type that was expected, where they spell one. */
export function coerceArguments(args: Record<string, unknown>, error: z.ZodError): CoercedArguments {
  const copy = structuredClone(args)
  const notes: string[] = []
  for (const issue of error.issues) {
    if (issue.code !== 'invalid_type') continue
    const holder = parentOf(copy, issue.path)
    const key = issue.path.at(-1)
    if (holder === undefined || key === undefined) continue
    const text = Reflect.get(holder, key) as unknown
    const value = typeof text === 'string' ? readAs(issue.expected, text) : undefined
    if (value === undefined) continue
    Reflect.set(holder, key, value)
    notes.push(`[The argument ${issue.path.join('.')} was text and was read as ${describe(value)}.]`)
  }
  return { args: copy, notes }
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
  if (expected === 'number' || expected === 'int')
    return /^-?\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : undefined
  if (expected === 'boolean') return { true: true, false: false }[trimmed.toLowerCase()]
  if (expected !== 'array' && expected !== 'object') return undefined
  try {
    const value: unknown = JSON.parse(trimmed)
    const isArray = Array.isArray(value)
    if (typeof value !== 'object' || value === null) return undefined
    return isArray === (expected === 'array') ? value : undefined
  } catch {
    return undefined
  }
}

function describe(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : `the ${typeof value} ${JSON.stringify(value)}`
}
