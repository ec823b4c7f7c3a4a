/** Strict mode: schemas that convert without loss, and arguments on the way there and back. */
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isObject } from '../../src/model/json.ts'
import { strictSchema, withoutStrictNulls } from '../../src/model/strict-schema.ts'
import { toolParameters } from '../../src/tools/tool-schema.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'

type Schema = Record<string, unknown>

const fits = (schema: Schema, value: unknown): boolean =>
  new AjvJsonSchemaValidator().getValidator(schema)(value).valid

function back(args: unknown, parameters: Schema): unknown {
  return withoutStrictNulls({ id: 'a', name: 't', args }, [{ name: 't', description: '', parameters }]).args
}

/** The arguments as strict mode has them: every optional member that is absent is null. */
function filled(value: unknown, schema: unknown): unknown {
  if (!isObject(schema)) return value
  const { properties, items } = schema
  if (Array.isArray(value)) return value.map((one) => filled(one, items))
  if (!isObject(value) || !isObject(properties)) return value
  return Object.fromEntries(
    Object.entries(properties).map(([name, one]) => [
      name,
      Object.hasOwn(value, name) ? filled(value[name], one) : null,
    ]),
  )
}

interface Made {
  schema: Schema
  /** Valid values. */
  value: fc.Arbitrary<unknown>
}

const made = (schema: Schema, value: fc.Arbitrary<unknown>): Made => ({ schema, value })
const scalar: fc.Arbitrary<Made> = fc.constantFrom(
  made({ type: 'string', description: 'Words.', minLength: 1 }, fc.string({ minLength: 1 })),
  made({ type: 'integer', minimum: 0, default: 5 }, fc.nat()),
  made({ type: 'boolean' }, fc.boolean()),
  made({ type: ['string', 'null'] }, fc.option(fc.string())),
  made({ type: 'string', enum: ['a', 'b'] }, fc.constantFrom('a', 'b')),
  made({ anyOf: [{ type: 'number' }, { type: 'null' }] }, fc.option(fc.nat())),
  made({ anyOf: [{ type: 'number' }, { type: 'string' }] }, fc.oneof(fc.nat(), fc.string())),
  made({ const: 1, type: 'number' }, fc.constant(1)),
  // Nothing of these can be strict.
  made({}, fc.jsonValue()),
  made({ type: 'object', properties: {} }, fc.object({ maxDepth: 0 })),
)
const name = fc.constantFrom('a', 'b', 'c', 'constructor', 'toString')

function objectOf(members: readonly (readonly [string, Made, boolean])[]): Made {
  const unique = [...new Map(members.map((member) => [member[0], member])).values()]
  const schema = {
    type: 'object',
    properties: Object.fromEntries(unique.map(([key, one]) => [key, one.schema])),
    required: unique.filter(([, , required]) => required).map(([key]) => key),
    additionalProperties: false,
  }
  const entries = unique.map(([key, one, required]) =>
    fc.tuple(fc.constant(key), one.value, required ? fc.constant(true) : fc.boolean()),
  )
  const value = fc
    .tuple(...entries)
    .map((all) => Object.fromEntries(all.filter(([, , there]) => there).map(([key, inner]) => [key, inner])))
  return made(schema, value)
}

const { node } = fc.letrec<{ node: Made; object: Made }>((tie) => ({
  object: fc.array(fc.tuple(name, tie('node'), fc.boolean()), { maxLength: 4 }).map(objectOf),
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    tie('object'),
    tie('node').map(({ schema, value }) =>
      made({ type: 'array', items: schema }, fc.array(value, { maxLength: 3 })),
    ),
  ),
}))
const root = fc.array(fc.tuple(name, node, fc.boolean()), { maxLength: 4 }).map(objectOf)

describe('property: a schema', () => {
  test('converts or declines; arguments that were valid are valid in it, and return as they were', () => {
    let conversions = 0
    fc.assert(
      fc.property(
        root.chain(({ schema, value }) => fc.tuple(fc.constant(schema), value)),
        ([schema, value]) => {
          const strict = strictSchema(schema)
          if (strict === undefined) {
            expect(back(value, schema)).toEqual(value)
            return
          }
          conversions++
          const there = filled(value, schema)
          expect(fits(strict, there)).toBe(true)
          expect(back(there, schema)).toEqual(value)
          expect(back(value, schema)).toEqual(value)
        },
      ),
      { numRuns: 400 },
    )
    expect(conversions).toBeGreaterThan(40)
  })

  test('in strict form requires all that it names, and nothing else, at every level', () => {
    const check = (schema: unknown): void => {
      if (Array.isArray(schema)) schema.forEach(check)
      if (!isObject(schema)) return
      if (schema['type'] === 'object')
        expect(schema).toMatchObject({
          additionalProperties: false,
          required: Object.keys(schema['properties'] as object),
        })
      Object.values(schema).forEach(check)
    }
    fc.assert(fc.property(root, ({ schema }) => check(strictSchema(schema))))
  })
})

describe('a schema has no strict form', () => {
  const object = (more: Schema): Schema => ({
    type: 'object',
    properties: {},
    additionalProperties: false,
    ...more,
  })
  const one = (schema: Schema, required: string[] = ['x']): Schema =>
    object({ properties: { x: schema }, required })
  test.each<[string, Schema]>([
    ['where others are allowed', { type: 'object', properties: {} }],
    ['where it allows anything', one({})],
    ['where null is a value of an optional property', one({ type: ['string', 'null'] }, [])],
    ['with a keyword that is not known', one({ type: 'string', contentEncoding: 'base64' })],
    ['with a reference', one({ $ref: '#/$defs/x' })],
    ['with alternatives of objects', one({ anyOf: [object({}), { type: 'null' }] })],
    ['where a required property is not described', object({ required: ['y'] })],
    ['where it is no object', { type: 'array', items: { type: 'string' } }],
  ])('%s', (_, schema) => {
    expect(strictSchema(schema)).toBeUndefined()
  })
})

test('what strict mode refuses is told in the description', () => {
  const x = { type: 'integer', description: 'How many.', minimum: 1, default: 2 }
  const parameters = { type: 'object', properties: { x }, additionalProperties: false }
  expect(strictSchema(parameters)).toEqual({
    type: 'object',
    properties: { x: { type: ['integer', 'null'], description: 'How many. (minimum: 1, default: 2)' } },
    required: ['x'],
    additionalProperties: false,
  })
})

test('every tool of ours has a strict form, but for the one that takes any value', () => {
  const without = builtinTools().filter(({ input }) => strictSchema(toolParameters(input)) === undefined)
  expect(without.map(({ name }) => name)).toEqual(['echo'])
})
