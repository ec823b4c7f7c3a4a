/**
 * A server's input schema for the model, legal for every provider: of 2020-12, an object at the
 * root without a choice there, one schema for the `items` of every array, and `type` only once. A
 * provider that finds one schema illegal refuses the whole request. Arguments are validated against
 * the server's own schema.
 */
import { unescape } from 'node:querystring'
import { deeperThan, isObject } from '../model/json.ts'
import { propertiesOf } from '../tools/tool-schema.ts'
import { modernSchema, type Schema } from './schema-dialects.ts'
import { visibleSchema } from './visible-text.ts'

/** Bytes of JSON. Every request contains the schema. */
const MAX_BYTES = 48 * 1024
const MAX_DEPTH = 32
/** Some provider refuses these at the root; validation keeps them. */
const NOT_AT_ROOT = ['oneOf', 'anyOf', 'allOf', 'not', 'enum', 'if', 'then', 'else']
/** Names of a place that no provider follows. */
const NOWHERE = ['$id', '$anchor', '$dynamicAnchor', '$dynamicRef']

/** The schema, or why the tool cannot be offered. */
export function modelSchema(schema: unknown): { parameters: Schema } | { problem: string } {
  if (!isObject(schema)) return { problem: 'its input schema is not an object' }
  if (deeperThan(schema, MAX_DEPTH))
    return { problem: `its input schema is nested more than ${MAX_DEPTH} deep` }
  const bytes = Buffer.byteLength(JSON.stringify(schema))
  if (bytes > MAX_BYTES)
    return { problem: `its input schema has ${bytes} bytes, and ${MAX_BYTES} are allowed` }
  const root = withoutReference(modernSchema(visibleSchema(schema), forProviders))
  if (root['type'] !== undefined && root['type'] !== 'object')
    return { problem: 'its input schema is not of type object' }
  const allowed = Object.entries(root).filter(([key]) => !NOT_AT_ROOT.includes(key))
  const found = { ...Object.fromEntries(allowed), type: 'object', properties: propertiesOf(root) }
  return { parameters: modernSchema(found, (one) => withoutDangling(one, found)) }
}

/** A root that only refers to one of its own definitions, as generators write it. */
function withoutReference(schema: Schema): Schema {
  const { $ref, ...rest } = schema
  const [, name] = typeof $ref === 'string' ? (/^#\/\$defs\/([^/]+)$/.exec($ref) ?? []) : []
  const definitions = schema['$defs']
  if (name === undefined || !isObject(definitions) || !Object.hasOwn(definitions, name)) return schema
  const target = definitions[name]
  return isObject(target) ? { ...rest, ...target } : schema
}

/** A reference to nothing in the root allows anything. */
function withoutDangling(schema: Schema, root: Schema): Schema {
  const { $ref, ...rest } = schema
  if (typeof $ref !== 'string') return schema
  const [start, ...path] = $ref.split('/')
  const names = path.map((part) => unescape(part).replaceAll('~1', '/').replaceAll('~0', '~'))
  const target = names.reduce<unknown>((at, name) => {
    const isThere = typeof at === 'object' && at !== null && Object.hasOwn(at, name)
    return isThere ? (at as Schema)[name] : undefined
  }, root)
  return start === '#' && target !== undefined ? schema : rest
}

function forProviders(schema: Schema): Schema {
  const allowed = Object.entries(schema).filter(([key]) => !NOWHERE.includes(key))
  return withItems(typedOnce(Object.fromEntries(allowed)))
}

/** Every array has one schema for the items that no other describes; a tuple ends by its length. */
function withItems(schema: Schema): Schema {
  const { type, items, prefixItems, maxItems = Infinity } = schema
  if (items === false) {
    const length = Array.isArray(prefixItems) ? prefixItems.length : 0
    return { ...schema, items: {}, maxItems: Math.min(Number(maxItems), length) }
  }
  const isArray = [type].flat().includes('array') || prefixItems !== undefined
  return items === true || (items === undefined && isArray) ? { ...schema, items: {} } : schema
}

/** Next to `anyOf` whose members all have a type, another `type` adds nothing. */
function typedOnce(schema: Schema): Schema {
  const { type, ...rest } = schema
  const { anyOf } = rest
  const typed = Array.isArray(anyOf) && anyOf.every((one) => isObject(one) && one['type'] !== undefined)
  return type !== undefined && typed ? rest : schema
}
