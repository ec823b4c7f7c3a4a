/**
 * The JSON Schema that a model gets for a tool's arguments: derived from the zod schema, never
 * written twice.
 */
import { nearest } from '@sandlot/shared/config/names'
import { mapExactNumbers } from '@sandlot/shared/base/exact-numbers'
import { z } from 'zod'

/**
 * Keywords in the order that reads best; the rest follow alphabetically. Arguments keep the order
 * of their declaration.
 */
const KEYWORDS = [
  'type',
  'description',
  'enum',
  'const',
  'properties',
  'items',
  'required',
  'additionalProperties',
]

/**
 * Deriving one takes a good part of a millisecond, and the same tools are registered for every
 * user.
 */
const derived = new WeakMap<ToolInput, Record<string, unknown>>()

/**
 * The same bytes in every process: a changed schema would throw away the provider's prompt cache.
 * @throws if zod cannot express it.
 */
export function toolParameters(input: ToolInput): Record<string, unknown> {
  const known = derived.get(input)
  if (known !== undefined) return known
  const parameters = orderKeywords(isZodInput(input) ? fromZod(input) : input.parameters)
  derived.set(input, parameters)
  return parameters
}

/**
 * The JSON Schema of what a tool declares as its `data`, for those who read about it. @throws if
 * zod cannot express it.
 */
export function dataSchema(output: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...schema } = z.toJSONSchema(output, { target: 'draft-7' })
  return orderKeywords(schema)
}

function fromZod(input: z.ZodObject): Record<string, unknown> {
  const { $schema: _, ...schema } = z.toJSONSchema(input, { io: 'input', target: 'draft-7' })
  return schema
}

function orderKeywords(schema: Record<string, unknown>): Record<string, unknown> {
  const rank = (key: string): number => (KEYWORDS.includes(key) ? KEYWORDS.indexOf(key) : KEYWORDS.length)
  const keys = Object.keys(schema).toSorted((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
  return Object.fromEntries(
    keys.map((key) => [key, key === 'properties' ? eachProperty(schema[key]) : ordered(schema[key])]),
  )
}

function eachProperty(properties: unknown): unknown {
  if (!isRecord(properties)) return properties
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, ordered(schema)]))
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered)
  return isRecord(value) ? orderKeywords(value) : value
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Arguments of a tool: as zod, for our own, or as a JSON Schema of a server. */
export interface JsonSchemaInput {
  /** The model's schema: a JSON Schema of type `object` that every provider accepts. */
  readonly parameters: Record<string, unknown>
  /**
   * The problems, one line each; empty when there is none. Bounded in time and length. `userId`:
   * the caller's. Rejects with `ToolError` where it cannot be checked in time.
   */
  check(args: Record<string, unknown>, userId: string): Promise<string[]>
  /** The tool sends numbers on as they are written, with more digits than JavaScript's. */
  readonly passesNumbersOn?: true
}

export type ToolInput = z.ZodObject | JsonSchemaInput

export function isZodInput(input: ToolInput): input is z.ZodObject {
  return input instanceof z.ZodObject
}

/** The names of the arguments, in the order of their declaration. */
export function argumentNames(input: ToolInput): string[] {
  return isZodInput(input) ? Object.keys(input.shape) : Object.keys(propertiesOf(input.parameters))
}

/** The schemas of a JSON Schema's own properties; empty when it declares none. */
export function propertiesOf(schema: Record<string, unknown>): Record<string, unknown> {
  const { properties } = schema
  return typeof properties === 'object' && properties !== null && !Array.isArray(properties)
    ? { ...properties }
    : {}
}

/**
 * Checked arguments with defaults filled in, or what does not fit, one line each; `error`: as zod
 * says it. Rejects as `check` does.
 */
export async function checkArguments(
  input: ToolInput,
  given: Record<string, unknown>,
  userId: string,
): Promise<{ args: Record<string, unknown> } | { problems: string[]; error?: z.ZodError }> {
  const held = holdNumbers(input, given)
  if ('problems' in held) return held
  if (!isZodInput(input)) {
    // A server fills in its own defaults.
    const problems = await input.check(held.args, userId)
    return problems.length === 0 ? held : { problems }
  }
  const { data, error } = input.safeParse(held.args)
  return error === undefined ? { args: data } : { problems: problemsOf(input, error), error }
}

/**
 * The arguments with numbers as this tool takes them. One that computes with them gets the nearest
 * fraction, but never another whole number.
 */
export function holdNumbers(
  input: ToolInput,
  given: Record<string, unknown>,
): { args: Record<string, unknown> } | { problems: string[] } {
  if (!isZodInput(input) && input.passesNumbersOn === true) return { args: given }
  const problems: string[] = []
  const args = mapExactNumbers(given, (digits, path) => {
    const nearest = Number(digits)
    if (!Number.isFinite(nearest) || Number.isInteger(nearest))
      problems.push(
        `${path.join('.')}: ${digits.slice(0, MAX_DIGITS)} cannot be held as a number here without changing it; send it as text, in double quotes`,
      )
    return nearest
  }) as Record<string, unknown>
  return problems.length === 0 ? { args } : { problems }
}

/** Digits of a number that a problem quotes. */
const MAX_DIGITS = 60

/** One line for each issue; an unknown name with the nearest that there is. */
function problemsOf(input: z.ZodObject, error: z.ZodError): string[] {
  const known = Object.keys(input.shape)
  return error.issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys' && issue.path.length === 0)
      return issue.keys.map((key) => unknownText(key, known))
    return [`${issue.path.length === 0 ? 'arguments' : issue.path.join('.')}: ${issue.message}`]
  })
}

export function unknownText(key: string, known: readonly string[]): string {
  const shown = key.slice(0, 100)
  const meant = nearest(shown, known)
  return `there is no argument ${JSON.stringify(shown)}${meant === undefined ? '' : `; did you mean ${meant}?`}`
}
