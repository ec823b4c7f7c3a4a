/** Schemas that servers really announce, and for which some provider refuses the whole request. From public threads. */
import { expect, test } from 'vitest'
import { modelSchema } from '../../src/mcp/model-schema.ts'

function asProperty(property: unknown): unknown {
  const made = modelSchema({ type: 'object', properties: { it: property } })
  if ('problem' in made) throw new Error(made.problem)
  return (made.parameters['properties'] as Record<string, unknown>)['it']
}

test.each<[string, unknown, unknown]>([
  ['an array without items', { type: 'array' }, { type: 'array', items: {} }],
  ['an array of anything', { type: 'array', items: true }, { type: 'array', items: {} }],
  ['one of several types', { type: ['array', 'null'] }, { type: ['array', 'null'], items: {} }],
  [
    'an array in an array, in a choice',
    { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'array' } }] },
    { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'array', items: {} } }] },
  ],
  [
    'a type beside a choice of types',
    { type: 'object', description: 'x', anyOf: [{ type: 'object' }, { type: 'string' }] },
    { description: 'x', anyOf: [{ type: 'object' }, { type: 'string' }] },
  ],
  ['anything', true, {}],
  [
    'anything, further in',
    { type: 'object', properties: { a: true }, additionalProperties: true },
    { type: 'object', properties: { a: {} }, additionalProperties: true },
  ],
])('%s', (_, announced, offered) => {
  expect(asProperty(announced)).toEqual(offered)
})

test.each<[string, unknown]>([
  ['a type that the members of the choice do not repeat', { type: 'object', anyOf: [{ required: ['a'] }] }],
  ['a tuple', { type: 'array', prefixItems: [{ type: 'string' }], items: {} }],
  [
    'members named like keywords',
    { type: 'object', properties: { items: { type: 'string' }, anyOf: { type: 'number' } } },
  ],
  ['values that look like schemas', { enum: [{ type: 'array' }], default: { type: 'array' } }],
])('stays as it is: %s', (_, announced) => {
  expect(asProperty(announced)).toEqual(announced)
})

test('definitions too', () => {
  const $defs = { list: { type: 'array' } }
  expect(modelSchema({ type: 'object', properties: { it: { $ref: '#/$defs/list' } }, $defs })).toEqual({
    parameters: {
      type: 'object',
      properties: { it: { $ref: '#/$defs/list' } },
      $defs: { list: { type: 'array', items: {} } },
    },
  })
})
