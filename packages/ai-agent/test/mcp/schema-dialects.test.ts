/** Schemas of every draft, mixed and broken: providers get valid ones of 2020-12 that mean the same. */
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv'
import { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/client/validators/cf-worker'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { modelSchema } from '../../src/mcp/model-schema.ts'
import { checkedSchema } from '../../src/mcp/schema-dialects.ts'
import { checkSchema } from '../../src/mcp/schema-check.ts'
import { json, startHttpServer } from './http-server.ts'
import { batchOf, openMcpBench } from './mcp-bench.ts'

const meta = new AjvJsonSchemaValidator().getValidator({
  $ref: 'https://json-schema.org/draft/2020-12/schema',
})

function offered(property: unknown, more: object = {}): Record<string, unknown> {
  const made = modelSchema({ type: 'object', properties: { it: property }, ...more })
  if ('problem' in made) throw new Error(made.problem)
  return made.parameters
}

const it = (property: unknown): unknown =>
  (offered(property, { $defs: { 'a/b': {} } })['properties'] as Record<string, unknown>)['it']

test.each<[string, unknown, unknown]>([
  ['an exclusive bound', { minimum: 0, exclusiveMinimum: true }, { exclusiveMinimum: 0 }],
  ['a bound that is not exclusive', { maximum: 9, exclusiveMaximum: false }, { maximum: 9 }],
  ['an exclusive bound without a number', { exclusiveMaximum: true }, {}],
  ['a divisor', { divisibleBy: 2 }, { multipleOf: 2 }],
  ['an id', { id: 'http://x.example/y#', type: 'string' }, { type: 'string' }],
  ['any type', { type: 'any', description: 'x' }, { description: 'x' }],
  ['a type of no draft', { type: ['string', 'file'] }, { type: 'string' }],
  [
    'a union of schemas',
    { type: ['string', { type: 'object', properties: { a: { required: true } } }] },
    {
      allOf: [{ anyOf: [{ type: 'string' }, { type: 'object', properties: { a: {} }, required: ['a'] }] }],
    },
  ],
  ['a base', { extends: { minimum: 1, exclusiveMinimum: true } }, { allOf: [{ exclusiveMinimum: 1 }] }],
  ['types that are not', { disallow: ['string'] }, { allOf: [{ not: { type: 'string' } }] }],
  [
    'dependencies',
    { dependencies: { a: ['b'], c: { minimum: 1, exclusiveMinimum: true }, d: 'e' } },
    { dependentSchemas: { c: { exclusiveMinimum: 1 } }, dependentRequired: { a: ['b'], d: ['e'] } },
  ],
  [
    'a tuple of draft 7',
    { type: 'array', items: [{ type: 'string' }, { minimum: 1, exclusiveMinimum: true }] },
    { type: 'array', prefixItems: [{ type: 'string' }, { exclusiveMinimum: 1 }], items: {} },
  ],
  [
    'a tuple that ends',
    { type: 'array', items: [{}, {}], additionalItems: false },
    { type: 'array', prefixItems: [{}, {}], items: {}, maxItems: 2 },
  ],
  [
    'a tuple with more of one kind',
    { type: 'array', items: [{}], additionalItems: { type: 'array' } },
    { type: 'array', prefixItems: [{}], items: { type: 'array', items: {} } },
  ],
  ['a tuple of 2020-12', { prefixItems: [{}] }, { prefixItems: [{}], items: {} }],
  ['a negation of a tuple', { not: { items: [{}] } }, { not: { prefixItems: [{}], items: {} } }],
  ['items of any kind', { items: true }, { items: {} }],
  ['references to nowhere', { $ref: '#/definitions/x', not: { $ref: 'x.json' } }, { not: {} }],
  ['a reference to a name that is written otherwise', { $ref: '#/$defs/a~1%62' }, { $ref: '#/$defs/a~1%62' }],
  ['values of the wrong kind', { minLength: '3', enum: 'a', title: 4, uniqueItems: 'yes', anyOf: [] }, {}],
])('%s', (_, announced, expected) => {
  expect(it(announced)).toEqual(expected)
})

test('references find what has another name now; members with the name of a keyword stay', () => {
  const definitions = {
    a: { items: [{ type: 'string' }], definitions: { b: {} } },
    definitions: { properties: { items: {}, id: { type: 'string' }, required: { type: 'boolean' } } },
  }
  const refs = [
    '#/definitions/a/items/0',
    '#/definitions/a/definitions/b',
    '#/definitions/definitions/properties/items',
  ]
  const parameters = offered({ anyOf: refs.map(($ref) => ({ $ref })) }, { definitions })
  expect(parameters).toMatchObject({
    properties: {
      it: {
        anyOf: [
          { $ref: '#/$defs/a/prefixItems/0' },
          { $ref: '#/$defs/a/$defs/b' },
          { $ref: '#/$defs/definitions/properties/items' },
        ],
      },
    },
    $defs: { a: { $defs: { b: {} } }, definitions: definitions.definitions },
  })
  expect(parameters).not.toHaveProperty('definitions')
})

// ── Whatever a server announces ──────────────────────────────────────────────────────────────────

const KEYWORDS = (
  'type items prefixItems additionalItems additionalProperties properties patternProperties required enum const not if then ' +
  'anyOf oneOf allOf extends disallow dependencies dependentRequired dependentSchemas definitions $defs contains ' +
  'propertyNames unevaluatedItems unevaluatedProperties minimum maximum exclusiveMinimum exclusiveMaximum multipleOf ' +
  'divisibleBy minLength minItems maxItems uniqueItems pattern format title default examples id $id $anchor $schema $ref ' +
  '$recursiveRef $comment optional nullable'
).split(' ')
const { schema: anySchema } = fc.letrec<{ schema: unknown; value: unknown }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<unknown>(true, false, {}, null, 'string', 3),
    fc.dictionary(fc.constantFrom(...KEYWORDS), tie('value'), { maxKeys: 5 }),
  ),
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom<unknown>(true, false, 0, -1, 2.5, null, '', 'any', 'array', '#/definitions/a', []),
    tie('schema'),
    fc.array(tie('schema'), { maxLength: 3 }),
    fc.array(fc.constantFrom('a', 'string', 'any', 'array'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'items', 'required', 'id', '__proto__'), tie('schema'), {
      maxKeys: 3,
    }),
  ),
}))

const NAMED = new Set(['properties', 'patternProperties', '$defs', 'dependentSchemas'])
const DATA = new Set([
  'dependentRequired',
  'const',
  'enum',
  'default',
  'examples',
  'optional',
  'nullable',
  'a',
  '__proto__',
])

function everyArray(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return true
  const { type, items, prefixItems } = schema as Record<string, unknown>
  const isArray = [type].flat().includes('array') || prefixItems !== undefined
  const fits = !isArray || (typeof items === 'object' && items !== null && !Array.isArray(items))
  const below = Object.entries(schema).filter(([key]) => !DATA.has(key))
  return (
    fits &&
    below.every(([key, value]) =>
      (NAMED.has(key) ? Object.values(value as object) : [value].flat()).every(everyArray),
    )
  )
}

test('becomes a schema of 2020-12 with items in every array', () => {
  fc.assert(
    fc.property(anySchema, (schema) => {
      const parameters = offered(schema)
      expect(meta(parameters).errorMessage ?? 'valid').toBe('valid')
      expect(everyArray(parameters)).toBe(true)
    }),
    { numRuns: 500 },
  )
})

const bound = fc.record({ minimum: fc.nat(3), exclusiveMinimum: fc.boolean(), maximum: fc.nat(5) })
const draft4 = fc.oneof(
  bound,
  fc.record({ items: fc.array(bound, { minLength: 1, maxLength: 3 }), additionalItems: fc.boolean() }),
  fc.record({
    properties: fc.record({ a: bound, b: bound }),
    dependencies: fc.record({ a: fc.constantFrom<unknown>(['b'], { required: ['b'] }) }),
  }),
)
const number = fc.integer({ min: -1, max: 6 })
const values = fc.oneof(
  number,
  fc.array(number, { maxLength: 4 }),
  fc.record({ a: number, b: number }, { requiredKeys: [] }),
)

describe('means the same', () => {
  test('as a schema of draft 4, for the check of the arguments and for the model', () => {
    fc.assert(
      fc.property(draft4, values, (schema, value) => {
        const own = new CfWorkerJsonSchemaValidator({ draft: '4' }).getValidator(schema as object)(
          value,
        ).valid
        const is = (other: object): boolean =>
          new CfWorkerJsonSchemaValidator().getValidator({ ...other })(value).valid
        expect(is(checkedSchema({ ...schema }))).toBe(own)
        expect(is(it(schema) as object)).toBe(own)
      }),
      { numRuns: 500 },
    )
  })

  test('also where it names its draft; a later one is checked as it is', async () => {
    const draft04 = { $schema: 'http://json-schema.org/draft-04/schema#', minimum: 0, exclusiveMinimum: true }
    expect(await checkSchema(checkedSchema(draft04), 0)).toMatchObject({ fits: 'no' })
    expect(await checkSchema(checkedSchema(draft04), 0.5)).toMatchObject({ fits: 'yes' })
    const mixed = { ...draft04, $schema: 'https://json-schema.org/draft/2020-12/schema' }
    expect(await checkSchema(checkedSchema(mixed), 0)).toMatchObject({ fits: 'no' })
    expect(await checkSchema(checkedSchema(mixed), 0.5)).toMatchObject({ fits: 'yes' })
    const draft07 = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      items: [{}],
      additionalItems: false,
    }
    expect(checkedSchema(draft07)).toBe(draft07)
    expect(await checkSchema(draft07, [1, 2])).toMatchObject({ fits: 'no' })
  })

  test('to a server: its tool is offered, and called with what its own schema allows', async () => {
    const inputSchema = {
      type: 'object',
      properties: { n: { type: 'number', minimum: 0, exclusiveMinimum: true, required: true } },
    }
    await using server = await startHttpServer()
    server.intercept = (_request, response, message) => {
      if (message?.method !== 'tools/list') return false
      json(response, message.id, { tools: [{ name: 't', inputSchema }] })
      return true
    }
    await using bench = openMcpBench({ s: { url: server.url } })
    const tools = await bench.tools()
    expect(tools.modelTools()).toMatchObject([
      { parameters: { properties: { n: { type: 'number', exclusiveMinimum: 0 } }, required: ['n'] } },
    ])
    const batch = batchOf(tools)
    expect(await batch.call('t', { n: 0.5 })).toMatchObject({ status: 'completed' })
    expect(await batch.call('t', { n: 0 })).toMatchObject({ reason: 'invalid_arguments' })
    expect(await batch.call('t', {})).toMatchObject({ reason: 'invalid_arguments' })
  })
})
