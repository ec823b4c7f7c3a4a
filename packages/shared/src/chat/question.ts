/**
 * A question to the user in the form of ACP's elicitation: a message and a small form, unchanged
 * from the tool to the screen.
 */
import { z } from 'zod'

const option = z.object({ const: z.string(), title: z.string() })

/** One field to fill in. */
const questionField = z.object({
  type: z.enum(['string', 'number', 'integer', 'boolean', 'array']),
  title: z.string().optional(),
  description: z.string().optional(),
  /** Choices of a `string`. */
  enum: z.array(z.string()).optional(),
  oneOf: z.array(option).optional(),
  /** Choices of an `array`, any number. */
  items: z
    .object({
      type: z.literal('string').optional(),
      enum: z.array(z.string()).optional(),
      anyOf: z.array(option).optional(),
    })
    .optional(),
})
export type QuestionField = z.infer<typeof questionField>

export const question = z.object({
  message: z.string(),
  requestedSchema: z.object({
    type: z.literal('object'),
    properties: z.record(z.string(), questionField),
    required: z.array(z.string()).optional(),
  }),
})
export type Question = z.infer<typeof question>

/** The user's values, by field name. */
export const questionContent = z.record(
  z.string().max(64),
  z.union([z.string().max(4000), z.number(), z.boolean(), z.array(z.string().max(4000)).max(50)]),
)
export type QuestionContent = z.infer<typeof questionContent>

/** The option for a filled-in form. */
export const ANSWER_OPTION = 'answer'
/** The option for no answer. */
export const DECLINE_OPTION = 'decline'

/**
 * Problems of an answer, one sentence each. A text field accepts values outside the offered
 * choices.
 */
export function problemsOfAnswer({ requestedSchema }: Question, content: QuestionContent): string[] {
  const { properties, required = [] } = requestedSchema
  const missing = required.filter((name) => content[name] === undefined || content[name] === '')
  const unknown = Object.keys(content).filter((name) => !Object.hasOwn(properties, name))
  const wrong = Object.entries(content).filter(([name, value]) => {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined
    return field !== undefined && !fits(field, value)
  })
  return [
    ...missing.map((name) => `${name} is missing.`),
    ...unknown.map((name) => `${name} was not asked for.`),
    ...wrong.map(([name, value]) =>
      isInexact(value)
        ? `${name} has more digits than can be sent without changing them.`
        : `${name} must be ${properties[name]?.type ?? 'something else'}.`,
    ),
  ]
}

function fits({ type }: QuestionField, value: QuestionContent[string]): boolean {
  switch (type) {
    case 'array':
      return Array.isArray(value)
    case 'integer':
      return typeof value === 'number' && Number.isSafeInteger(value)
    case 'number':
      return typeof value === 'number' && !isInexact(value)
    case 'string':
    case 'boolean':
      return typeof value === type
  }
}

/** True for a number that may have been rounded when typed or parsed. */
function isInexact(value: QuestionContent[string]): boolean {
  return typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
}
