import { isExactNumber, stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import { z } from 'zod'
import { unknownText, type JsonSchemaInput } from '../tool-schema.ts'
import type { Tool } from '../tool.ts'

const TYPES = ['object', 'string', 'number', 'boolean', 'null'] as const
/** Every type by name: Gemini refuses a schema without one. */
const typed = TYPES.map((type) => ({ type }))
/** A JSON Schema: numbers of a zod schema lose digits. `check` accepts every value. */
const input: JsonSchemaInput = {
  parameters: {
    type: 'object',
    properties: {
      value: {
        description: 'Any JSON value.',
        anyOf: [...typed, { type: 'array', items: { anyOf: typed } }],
      },
    },
    required: ['value'],
    additionalProperties: false,
  },
  passesNumbersOn: true,
  check: (args) =>
    Promise.resolve([
      ...(Object.hasOwn(args, 'value') ? [] : ['value: is missing']),
      ...Object.keys(args).flatMap((name) => (name === 'value' ? [] : [unknownText(name, ['value'])])),
    ]),
}
const output = z.strictObject({
  value: z.unknown(),
  type: z.enum([...TYPES, 'array']),
  bytes: z.int(),
  receivedAt: z.iso.datetime(),
})

/**
 * The smallest tool: for contract tests, and for a model that wants to see whether tools work at
 * all.
 */
export const echo: Tool = {
  name: 'echo',
  description:
    'Returns the value it was given, unchanged, with its JSON type, its size in bytes and the time. Use it only to check that tools work.',
  kind: 'other',
  input,
  output,
  readOnly: true,
  runs: { timeoutMs: 5000 },
  title: () => 'Echo',
  // oxlint-disable-next-line require-yield
  async *execute({ value }, ctx) {
    const bytes = Buffer.byteLength(stringifyExactly(value) ?? '')
    const data = { value, type: typeOf(value), bytes, receivedAt: new Date(ctx.now()).toISOString() }
    return { status: 'completed', forModel: stringifyExactly(data) ?? '', data }
  },
}

function typeOf(value: unknown): string {
  if (isExactNumber(value)) return 'number'
  if (Array.isArray(value)) return 'array'
  return value === null ? 'null' : typeof value
}
