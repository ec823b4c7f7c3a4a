/**
 * The schema of a tool's arguments in the form of strict mode, in which a provider holds the model
 * to it: every property is required, one that was optional may be null, and there are no others.
 */
import { type JsonObject, isObject } from './json.ts'
import type { ModelCall, ModelTool } from './model.ts'

const KEPT = new Set(['type', 'description', 'enum', 'const', 'properties', 'items', 'anyOf'])
const SCALARS = new Set(['string', 'number', 'integer', 'boolean', 'null'])
/** Some provider refuses these in strict mode. The description has them in words. */
const TOLD = new Set([
  'default',
  'examples',
  'exclusiveMaximum',
  'exclusiveMinimum',
  'format',
  'maxItems',
  'maxLength',
  'maximum',
  'minItems',
  'minLength',
  'minimum',
  'multipleOf',
  'pattern',
  'title',
])
/** Levels of objects and arrays. */
const MAX_DEPTH = 5

const converted = new WeakMap<JsonObject, JsonObject | false>()

/**
 * The strict form of a JSON Schema, or undefined where it has none without loss: arguments that
 * were valid would not be, or null could mean two things.
 */
export function strictSchema(schema: JsonObject): JsonObject | undefined {
  const known = converted.get(schema) ?? (schema['type'] === 'object' ? (convert(schema, 0) ?? false) : false)
  converted.set(schema, known)
  return known === false ? undefined : known
}

function convert(schema: unknown, depth: number): JsonObject | undefined {
  if (!isObject(schema) || depth > MAX_DEPTH) return undefined
  const { type, required: _, additionalProperties: __, ...rest } = schema
  if (Object.keys(rest).some((name) => !KEPT.has(name) && !TOLD.has(name))) return undefined
  const kept = Object.fromEntries(Object.entries(schema).filter(([name]) => KEPT.has(name)))
  const told = Object.entries(rest).filter(([name]) => TOLD.has(name))
  const words = told.map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(', ')
  const described = [rest['description'], words === '' ? '' : `(${words})`].filter(Boolean).join(' ')
  const description = described === '' ? {} : { description: described }
  if (Array.isArray(rest['anyOf'])) {
    // Alternatives of objects would leave open which of them a null belongs to.
    const anyOf = rest['anyOf'].map((one) =>
      isObject(one) && isScalar(one) ? convert(one, depth) : undefined,
    )
    return type === undefined && !anyOf.includes(undefined) ? { ...kept, ...description, anyOf } : undefined
  }
  if (type === 'object') {
    const members = convertProperties(schema, depth)
    return members === undefined ? undefined : { ...kept, ...description, ...members }
  }
  if (type === 'array') {
    const items = convert(rest['items'], depth + 1)
    return items === undefined ? undefined : { ...kept, ...description, items }
  }
  return isScalar(schema) ? { ...kept, ...description } : undefined
}

function isScalar({ type }: JsonObject): boolean {
  const types: unknown[] = Array.isArray(type) ? type : [type]
  return types.length > 0 && types.every((one) => SCALARS.has(String(one)))
}

function convertProperties(schema: JsonObject, depth: number): JsonObject | undefined {
  const { properties = {}, additionalProperties, required = [] } = schema
  if (!isObject(properties) || !Array.isArray(required) || additionalProperties !== false) return undefined
  const names = Object.keys(properties)
  if (required.some((name) => !names.includes(String(name)))) return undefined
  const strict = Object.entries(properties).flatMap(([name, property]): [string, JsonObject][] => {
    const one = convert(property, depth + 1)
    if (one === undefined || required.includes(name)) return one === undefined ? [] : [[name, one]]
    return allowsNull(one) ? [] : [[name, orNull(one)]]
  })
  if (strict.length < names.length) return undefined
  return { properties: Object.fromEntries(strict), required: names, additionalProperties: false }
}

function orNull(schema: JsonObject): JsonObject {
  const { type, description, ...values } = schema
  const simple = typeof type === 'string' && values['enum'] === undefined && values['const'] === undefined
  if (simple) return { ...schema, type: [type, 'null'] }
  const { description: _, ...rest } = schema
  const alternatives = { anyOf: [rest, { type: 'null' }] }
  return description === undefined ? alternatives : { description, ...alternatives }
}

function allowsNull({ type, enum: values, const: value, anyOf }: JsonObject): boolean {
  if (Array.isArray(anyOf)) return anyOf.some((one) => isObject(one) && allowsNull(one))
  if (Array.isArray(values) && !values.includes(null)) return false
  return value === null || (value === undefined && [type].flat().includes('null'))
}

// ── Arguments ───────────────────────────────────────────────────────────────────────────────────

/**
 * Removes nulls that stand for an absent optional argument in strict mode. The arguments of a tool
 * without a strict schema stay unchanged.
 */
export function withoutStrictNulls(call: ModelCall, tools: readonly ModelTool[] = []): ModelCall {
  const tool = isObject(call.args) ? tools.find(({ name }) => name === call.name) : undefined
  if (tool === undefined || strictSchema(tool.parameters) === undefined) return call
  return { ...call, args: dropNulls(call.args, tool.parameters) }
}

/** `schema`: not the strict one. */
function dropNulls(value: unknown, schema: unknown): unknown {
  if (!isObject(schema)) return value
  const { properties, required, items } = schema
  if (Array.isArray(value)) return value.map((one) => dropNulls(one, items))
  if (!isObject(value) || !isObject(properties)) return value
  const isAbsent = (name: string): boolean =>
    value[name] === null &&
    Object.hasOwn(properties, name) &&
    !(Array.isArray(required) && required.includes(name))
  const kept = Object.entries(value).filter(([name]) => !isAbsent(name))
  return Object.fromEntries(
    kept.map(([name, inner]) => [
      name,
      Object.hasOwn(properties, name) ? dropNulls(inner, properties[name]) : inner,
    ]),
  )
}
