/**
 * A server's input schema as a model gets it: as the server wrote it, but legal for every provider. They want an object
 * at the root and nothing there that chooses between several; the arguments are checked against the whole all the same.
 */
import { deeperThan } from '../json-depth.ts'
import { propertiesOf } from '../tools/tool-input.ts'
import { visibleSchema } from './visible-text.ts'

/** Bytes of JSON. A schema goes out with every request. */
const MAX_BYTES = 48 * 1024
const MAX_DEPTH = 32
/** At the root these are refused by some provider; the checking keeps them. */
const NOT_AT_ROOT = [
  '$schema',
  '$id',
  '$anchor',
  'oneOf',
  'anyOf',
  'allOf',
  'not',
  'enum',
  'if',
  'then',
  'else',
]

type Schema = Record<string, unknown>

/** The schema, or why the tool cannot be offered. */
export function modelSchema(schema: unknown): { parameters: Schema } | { problem: string } {
  if (!isSchema(schema)) return { problem: 'its input schema is not an object' }
  if (deeperThan(schema, MAX_DEPTH))
    return { problem: `its input schema is nested more than ${MAX_DEPTH} deep` }
  const bytes = Buffer.byteLength(JSON.stringify(schema))
  if (bytes > MAX_BYTES)
    return { problem: `its input schema has ${bytes} bytes, and ${MAX_BYTES} are allowed` }
  const root = withoutReference(visibleSchema(schema) as Schema)
  if (root['type'] !== undefined && root['type'] !== 'object')
    return { problem: 'its input schema is not of type object' }
  const kept = Object.entries(root).filter(([key]) => !NOT_AT_ROOT.includes(key))
  const properties = Object.entries(propertiesOf(root)).map(([name, property]) => [
    name,
    legalProperty(property),
  ])
  return {
    parameters: { ...Object.fromEntries(kept), type: 'object', properties: Object.fromEntries(properties) },
  }
}

/** A root that only points into its own definitions, as generators like to write it. */
function withoutReference(schema: Schema): Schema {
  const reference = schema['$ref']
  const [, holder, name] =
    typeof reference === 'string' ? (/^#\/(\$defs|definitions)\/([^/]+)$/.exec(reference) ?? []) : []
  if (holder === undefined || name === undefined) return schema
  const definitions = schema[holder]
  const target = isSchema(definitions) && Object.hasOwn(definitions, name) ? definitions[name] : undefined
  const { $ref: _, ...rest } = schema
  return isSchema(target) ? { ...rest, ...target } : schema
}

/** `true` is a schema that takes everything, but not all providers know that. */
function legalProperty(property: unknown): unknown {
  return property === true ? {} : property
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
