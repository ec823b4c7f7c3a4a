/**
 * A server's input schema for the model, legal for every provider: an object at the root without a
 * choice there, `items` in every array, and `type` only once. A provider that finds one schema
 * illegal refuses the whole request. Arguments are validated against the server's own schema.
 */
import { deeperThan } from '../model/json.ts'
import { propertiesOf } from '../tools/tool-schema.ts'
import { visibleSchema } from './visible-text.ts'

/** Bytes of JSON. Every request contains the schema. */
const MAX_BYTES = 48 * 1024
const MAX_DEPTH = 32
/** Some provider refuses these at the root; validation keeps them. */
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
  const parameters = legal({ ...Object.fromEntries(kept), type: 'object', properties: propertiesOf(root) })
  return { parameters: parameters as Schema }
}

/** A root that only refers to one of its own definitions, as generators write it. */
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

/** Keywords with subschemas: by name, in a list, or a single one. */
const NAMED = ['properties', 'patternProperties', '$defs', 'definitions']
const LISTED = ['anyOf', 'oneOf', 'allOf', 'prefixItems', 'items']
const ALONE = ['items', 'additionalProperties']

/** A schema with its subschemas. Its depth is already limited. */
function legal(schema: unknown): unknown {
  // Not every provider knows this form of a schema that accepts everything.
  if (schema === true) return {}
  if (!isSchema(schema)) return schema
  const inside = Object.entries(schema).map(([key, value]) => [key, legalInside(key, value)])
  return withItems(typedOnce(Object.fromEntries(inside) as Schema))
}

function legalInside(key: string, value: unknown): unknown {
  if (NAMED.includes(key) && isSchema(value))
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, legal(inner)]))
  if (LISTED.includes(key) && Array.isArray(value)) return value.map(legal)
  return ALONE.includes(key) && isSchema(value) ? legal(value) : value
}

function withItems(schema: Schema): Schema {
  const { type, items, prefixItems } = schema
  const isArray = type === 'array' || (Array.isArray(type) && type.includes('array'))
  return isArray && (items ?? prefixItems ?? true) === true ? { ...schema, items: {} } : schema
}

/** Next to `anyOf` whose members all have a type, another `type` adds nothing. */
function typedOnce(schema: Schema): Schema {
  const { type, ...rest } = schema
  const { anyOf } = rest
  const typed = Array.isArray(anyOf) && anyOf.every((one) => isSchema(one) && one['type'] !== undefined)
  return type !== undefined && typed ? rest : schema
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
