/**
 * JSON Schemas of any draft as one of 2020-12 that means the same: providers check every schema of
 * a request, and refuse the whole request for one keyword in an older shape.
 */
import { isObject } from '../model/json.ts'
import { propertiesOf } from '../tools/tool-schema.ts'

export type Schema = Record<string, unknown>

/** Keywords with subschemas: by name, in a list, or a single one. */
const NAMED = ['properties', 'patternProperties', '$defs', 'dependentSchemas']
const LISTED = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const ALONE = ['contains', 'propertyNames', 'if', 'then', 'else', 'not', 'contentSchema']
/** Single ones that every provider also takes as true or false. */
const ALONE_OR_BOOLEAN = ['items', 'additionalProperties', 'unevaluatedItems', 'unevaluatedProperties']
const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'integer', 'string']

type Check = (value: unknown) => boolean
const isText: Check = (value) => typeof value === 'string'
const isFlag: Check = (value) => typeof value === 'boolean'
const isNumber: Check = (value) => typeof value === 'number'
const isCount: Check = (value) => Number.isInteger(value) && Number(value) >= 0
const isNamed =
  (shape: RegExp): Check =>
  (value) =>
    typeof value === 'string' && shape.test(value)
const allOf = (check: Check, ...keywords: string[]): Record<string, Check> =>
  Object.fromEntries(keywords.map((keyword) => [keyword, check]))

/** A keyword whose value is none in 2020-12 is left out. One that is not here stays as it is. */
const CHECKS: Record<string, Check> = {
  ...allOf(isText, '$comment', 'title', 'description', 'format', 'pattern', '$ref', '$dynamicRef'),
  ...allOf(isText, 'contentEncoding', 'contentMediaType'),
  ...allOf(isFlag, 'uniqueItems', 'deprecated', 'readOnly', 'writeOnly'),
  ...allOf(isNumber, 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'),
  ...allOf(isCount, 'minLength', 'maxLength', 'minItems', 'maxItems', 'minContains', 'maxContains'),
  ...allOf(isCount, 'minProperties', 'maxProperties'),
  ...allOf(isNamed(/^[^#]*#?$/), '$id'),
  ...allOf(isNamed(/^[A-Za-z_][-A-Za-z0-9._]*$/), '$anchor', '$dynamicAnchor'),
  ...allOf(() => false, '$schema', '$vocabulary', '$recursiveAnchor'),
  multipleOf: (value) => typeof value === 'number' && value > 0,
  // An empty one allows nothing; some provider refuses it.
  enum: (value) => Array.isArray(value) && value.length > 0,
  examples: Array.isArray,
}

/** `each` gets every schema in it, the innermost first. Its depth is already limited. */
export function modernSchema(schema: unknown, each: (schema: Schema) => Schema): Schema {
  if (schema === false) return each({ not: each({}) })
  if (!isObject(schema)) return each({})
  const inside = Object.entries(renewed(schema)).flatMap(([key, value]) => {
    const read = valueOf(key, value, each)
    return read === undefined ? [] : [[key, read] as const]
  })
  return each(Object.fromEntries(inside))
}

/** The value of a keyword; undefined: it is left out. */
function valueOf(key: string, value: unknown, each: (schema: Schema) => Schema): unknown {
  const modern = (one: unknown): Schema => modernSchema(one, each)
  if (NAMED.includes(key)) return isObject(value) ? mapped(value, modern) : undefined
  if (LISTED.includes(key)) return Array.isArray(value) && value.length > 0 ? value.map(modern) : undefined
  if (ALONE.includes(key)) return modern(value)
  if (ALONE_OR_BOOLEAN.includes(key)) return isFlag(value) ? value : modern(value)
  if (key === 'required') return Array.isArray(value) ? texts(value) : undefined
  if (key === 'dependentRequired') return isObject(value) ? mapped(value, texts) : undefined
  if (key === 'type') return typeOf(value)
  return Object.hasOwn(CHECKS, key) && CHECKS[key]?.(value) === false ? undefined : value
}

function mapped(named: Schema, each: (value: unknown) => unknown): Schema {
  return Object.fromEntries(Object.entries(named).map(([name, value]) => [name, each(value)]))
}

function texts(value: unknown): unknown[] {
  return [...new Set([value].flat().filter(isText))]
}

function typeOf(value: unknown): unknown {
  const given = [value].flat()
  const named = new Set(given.filter((type) => TYPES.some((known) => known === type)))
  const types = given.includes('any') ? [] : [...named]
  return types.length > 1 ? types : types[0]
}

/** The keywords of earlier drafts as those of 2020-12. */
function renewed(schema: Schema): Schema {
  const { id, definitions, dependencies, divisibleBy, additionalItems, ...rest } = schema
  const made: Schema = { ...rest }
  // A member of data may be called so; as a keyword it is the place of the schema.
  if (id !== undefined && !isText(id)) made['id'] = id
  if (isObject(definitions))
    made['$defs'] = { ...definitions, ...(isObject(rest['$defs']) ? rest['$defs'] : {}) }
  if (divisibleBy !== undefined) made['multipleOf'] ??= divisibleBy
  if (Array.isArray(rest['items'])) {
    made['prefixItems'] = rest['items']
    if (additionalItems === undefined) delete made['items']
    else made['items'] = additionalItems
  }
  for (const bound of ['minimum', 'maximum']) renewBound(made, bound)
  renewRequired(made)
  renewDependencies(made, dependencies)
  renewDraft3(made)
  if (rest['$recursiveRef'] !== undefined) made['$ref'] ??= rest['$recursiveRef']
  delete made['$recursiveRef']
  if (typeof made['$ref'] === 'string') made['$ref'] = renewedReference(made['$ref'])
  return made
}

function renewBound(made: Schema, bound: string): void {
  const exclusive = `exclusive${bound === 'minimum' ? 'Minimum' : 'Maximum'}`
  const isExclusive = made[exclusive]
  if (typeof isExclusive !== 'boolean') return
  delete made[exclusive]
  if (!isExclusive || !isNumber(made[bound])) return
  made[exclusive] = made[bound]
  delete made[bound]
}

/** In draft 3, and in many hands, a property says itself that it is required. */
function renewRequired(made: Schema): void {
  const required = Object.entries(propertiesOf(made)).flatMap(([name, property]) =>
    isObject(property) && property['required'] === true ? [name] : [],
  )
  if (required.length === 0) return
  const listed = Array.isArray(made['required']) ? made['required'] : []
  made['required'] = [...listed, ...required]
}

function renewDependencies(made: Schema, dependencies: unknown): void {
  if (!isObject(dependencies)) return
  const isSchema = ([, needs]: [string, unknown]): boolean => isObject(needs) || isFlag(needs)
  const entries = Object.entries(dependencies)
  const [schemas, names] = [entries.filter(isSchema), entries.filter((entry) => !isSchema(entry))]
  if (schemas.length > 0) made['dependentSchemas'] ??= Object.fromEntries(schemas)
  if (names.length > 0) made['dependentRequired'] ??= Object.fromEntries(names)
}

/** Unions of schemas, `extends` and `disallow`. */
function renewDraft3(made: Schema): void {
  const { type, extends: base, disallow } = made
  const union = Array.isArray(type) && type.some(isObject) ? type : undefined
  const all = [
    ...(isObject(base) || Array.isArray(base) ? [base].flat() : []),
    ...(union === undefined ? [] : [{ anyOf: union.map((one) => (isObject(one) ? one : { type: one })) }]),
    ...(disallow === undefined ? [] : [{ not: { type: disallow } }]),
  ]
  if (union !== undefined) delete made['type']
  delete made['extends']
  delete made['disallow']
  if (all.length > 0) made['allOf'] = [...(Array.isArray(made['allOf']) ? made['allOf'] : []), ...all]
}

const RENAMED = new Map([
  ['definitions', '$defs'],
  ['dependencies', 'dependentSchemas'],
  ['additionalItems', 'items'],
])

/** `#/definitions/a/items/0` → `#/$defs/a/prefixItems/0`; names of members stay. */
function renewedReference(reference: string): string {
  if (!reference.startsWith('#/')) return reference
  const path: string[] = []
  let isName = false
  for (const part of reference.slice(2).split('/')) {
    if (isName) {
      path.push(part)
      isName = false
      continue
    }
    if (/^\d+$/.test(part) && path.at(-1) === 'items') path[path.length - 1] = 'prefixItems'
    const keyword = RENAMED.get(part) ?? part
    path.push(keyword)
    isName = NAMED.includes(keyword)
  }
  return `#/${path.join('/')}`
}

/**
 * The schema that values are checked against: that of the server, but in 2020-12 where the
 * validator does not know its draft, or it names none. Made once for a schema.
 */
export function checkedSchema(schema: Schema): Schema {
  const { $schema } = schema
  const isOld = typeof $schema === 'string' && /\/draft-0[34]\//.test($schema)
  if ($schema !== undefined && !isOld) return schema
  const known = checked.get(schema)
  if (known !== undefined) return known
  const made = modernSchema(schema, (one) => one)
  checked.set(schema, made)
  return made
}

const checked = new WeakMap<Schema, Schema>()
