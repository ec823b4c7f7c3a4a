/**
 * JSON Schemas of any draft as one of 2020-12 that means the same: providers check every schema of
 * a request, and refuse the whole request for one keyword in an older shape.
 */
import { isObject } from '../model/json.ts'
import { propertiesOf } from '../tools/tool-schema.ts'

export type Schema = Record<string, unknown>
/** The value of a keyword in 2020-12; undefined: it is none, and is left out. */
type Read = (value: unknown, modern: (schema: unknown) => Schema) => unknown

const isText = (value: unknown): boolean => typeof value === 'string'
const isFlag = (value: unknown): boolean => typeof value === 'boolean'
const isNumber = (value: unknown): boolean => typeof value === 'number'
const isCount = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 0
const texts = (value: unknown): unknown[] => [...new Set([value].flat().filter(isText))]
const mapped = (named: unknown, each: (value: unknown) => unknown): Schema | undefined =>
  isObject(named)
    ? Object.fromEntries(Object.entries(named).map(([name, value]) => [name, each(value)]))
    : undefined
const when =
  (fits: (value: unknown) => boolean): Read =>
  (value) =>
    fits(value) ? value : undefined
const named = (shape: RegExp): Read => when((value) => typeof value === 'string' && shape.test(value))
const all = (keywords: string, read: Read): Record<string, Read> =>
  Object.fromEntries(keywords.split(' ').map((keyword) => [keyword, read]))

/** Keywords with subschemas by name. */
const NAMED = 'properties patternProperties $defs dependentSchemas'
const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'integer', 'string']

/** A keyword that is not here stays as it is. */
const KEYWORDS: Record<string, Read> = {
  ...all(NAMED, mapped),
  ...all('anyOf oneOf allOf prefixItems', (value, modern) =>
    Array.isArray(value) && value.length > 0 ? value.map(modern) : undefined,
  ),
  ...all('contains propertyNames if then else not contentSchema', (value, modern) => modern(value)),
  // Every provider takes these as true or false too.
  ...all('items additionalProperties unevaluatedItems unevaluatedProperties', (value, modern) =>
    isFlag(value) ? value : modern(value),
  ),
  ...all('$comment title description format pattern $ref $dynamicRef', when(isText)),
  ...all('contentEncoding contentMediaType', when(isText)),
  ...all('uniqueItems deprecated readOnly writeOnly', when(isFlag)),
  ...all('minimum maximum exclusiveMinimum exclusiveMaximum', when(isNumber)),
  ...all('minLength maxLength minItems maxItems minContains maxContains', when(isCount)),
  ...all('minProperties maxProperties', when(isCount)),
  ...all('$id', named(/^[^#]*#?$/)),
  ...all('$anchor $dynamicAnchor', named(/^[A-Za-z_][-A-Za-z0-9._]*$/)),
  ...all('$schema $vocabulary $recursiveAnchor', () => undefined),
  multipleOf: when((value) => typeof value === 'number' && value > 0),
  // An empty one allows nothing; some provider refuses it.
  enum: when((value) => Array.isArray(value) && value.length > 0),
  examples: when(Array.isArray),
  required: (value) => (Array.isArray(value) ? texts(value) : undefined),
  dependentRequired: (value) => mapped(value, texts),
  type(value) {
    const given = [value].flat()
    const types = given.includes('any') ? [] : texts(value).filter((type) => TYPES.includes(String(type)))
    return types.length > 1 ? types : types[0]
  },
}

/** `each` gets every schema in it, the innermost first. Its depth is already limited. */
export function modernSchema(schema: unknown, each: (schema: Schema) => Schema): Schema {
  if (schema === false) return each({ not: each({}) })
  if (!isObject(schema)) return each({})
  const inside = Object.entries(renewed(schema)).flatMap(([key, value]) => {
    const read = Object.hasOwn(KEYWORDS, key) ? KEYWORDS[key] : undefined
    const made = read === undefined ? value : read(value, (one) => modernSchema(one, each))
    return made === undefined ? [] : [[key, made] as const]
  })
  return each(Object.fromEntries(inside))
}

/** The keywords of earlier drafts as those of 2020-12. */
function renewed(schema: Schema): Schema {
  const { id: _id, definitions, dependencies, divisibleBy, additionalItems, $recursiveRef, ...made } = schema
  if (isObject(definitions)) made['$defs'] = { ...definitions, ...(isObject(made['$defs']) && made['$defs']) }
  if (divisibleBy !== undefined) made['multipleOf'] ??= divisibleBy
  if (Array.isArray(made['items'])) {
    made['prefixItems'] = made['items']
    made['items'] = additionalItems
    if (additionalItems === undefined) delete made['items']
  }
  renewBound(made, 'minimum', 'exclusiveMinimum')
  renewBound(made, 'maximum', 'exclusiveMaximum')
  renewRequired(made)
  renewDependencies(made, dependencies)
  renewDraft3(made)
  const reference = made['$ref'] ?? $recursiveRef
  if (typeof reference === 'string') made['$ref'] = renewedReference(reference)
  return made
}

function renewBound(made: Schema, bound: string, exclusive: string): void {
  const isExclusive = made[exclusive]
  if (!isFlag(isExclusive)) return
  delete made[exclusive]
  if (isExclusive !== true || !isNumber(made[bound])) return
  made[exclusive] = made[bound]
  delete made[bound]
}

/** In draft 3, and in many hands, a property says itself that it is required. */
function renewRequired(made: Schema): void {
  const required = Object.entries(propertiesOf(made)).flatMap(([name, property]) =>
    isObject(property) && property['required'] === true ? [name] : [],
  )
  if (required.length > 0) made['required'] = texts([made['required'], required].flat(2))
}

function renewDependencies(made: Schema, dependencies: unknown): void {
  if (!isObject(dependencies)) return
  const { schemas, names } = Object.groupBy(Object.entries(dependencies), ([, needs]) =>
    isObject(needs) || isFlag(needs) ? 'schemas' : 'names',
  )
  if (schemas !== undefined) made['dependentSchemas'] ??= Object.fromEntries(schemas)
  if (names !== undefined) made['dependentRequired'] ??= Object.fromEntries(names)
}

/** Unions of schemas, `extends` and `disallow`. */
function renewDraft3(made: Schema): void {
  const { type, extends: base, disallow, allOf = [] } = made
  const added: unknown[] = typeof base === 'object' && base !== null ? [base].flat() : []
  if (Array.isArray(type) && type.some(isObject)) {
    added.push({ anyOf: type.map((one: unknown) => (isObject(one) ? one : { type: one })) })
    delete made['type']
  }
  if (disallow !== undefined) added.push({ not: { type: disallow } })
  delete made['extends']
  delete made['disallow']
  if (added.length > 0) made['allOf'] = [...(Array.isArray(allOf) ? allOf : []), ...added]
}

const RENAMED = new Map([
  ['definitions', '$defs'],
  ['dependencies', 'dependentSchemas'],
  ['additionalItems', 'items'],
])

/** `#/definitions/a/items/0` → `#/$defs/a/prefixItems/0`; names of members stay. */
function renewedReference(reference: string): string {
  if (!reference.startsWith('#/')) return reference
  const parts = reference.split('/')
  let isName = false
  const renewed = parts.map((part, at) => {
    const isTuple = part === 'items' && /^\d+$/.test(parts[at + 1] ?? '')
    const keyword = isName ? part : isTuple ? 'prefixItems' : (RENAMED.get(part) ?? part)
    isName = !isName && NAMED.split(' ').includes(keyword)
    return keyword
  })
  return renewed.join('/')
}

const checked = new WeakMap<Schema, Schema>()

/**
 * The schema that values are checked against: that of the server, but brought to 2020-12 unless it
 * names a draft between that and 4, which the validator knows. Made once for a schema.
 */
export function checkedSchema(schema: Schema): Schema {
  const { $schema = '' } = schema
  if (typeof $schema !== 'string' || !/^$|\/draft-0[34]\/|\/2020-12\//.test($schema)) return schema
  const made = checked.get(schema) ?? modernSchema(schema, (one) => one)
  checked.set(schema, made)
  return made
}
