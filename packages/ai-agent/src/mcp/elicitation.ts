/**
 * Elicitation: a server asks the user something in the middle of a call, as the tool `ask_user`
 * does.
 */
import {
  ANSWER_OPTION,
  DECLINE_OPTION,
  type Question,
  type QuestionContent,
  question,
  questionContent,
} from '@sandlot/shared/chat/question'
import { z } from 'zod'
import type { ApprovalAnswer, ApprovalOption } from '../tools/tool.ts'
import { visibleSchema, visibleText } from './visible-text.ts'

export interface Elicitation {
  /** In the server's words. */
  message: string
  /** A flat JSON Schema of the answer: texts, numbers, choices. */
  schema: unknown
}

export type ElicitationAnswer =
  | { action: 'accept'; content: Record<string, string | number | boolean | string[]> }
  | { action: 'decline' | 'cancel' }

/** Asks the user. Never rejects. */
export type Elicit = (asked: Elicitation) => Promise<ElicitationAnswer>

/** Milliseconds. The server keeps its resources until then. */
export const QUESTION_EXPIRES_MS = 600_000
const MAX_CHARS = 8_000

export const QUESTION_OPTIONS: readonly ApprovalOption[] = [
  { optionId: ANSWER_OPTION, name: 'Answer', kind: 'allow_once' },
  { optionId: DECLINE_OPTION, name: 'Decline', kind: 'reject_once' },
]

/**
 * The question for the user, with the server's name in it; undefined when the form cannot be shown.
 */
export function questionOf(server: string, { message, schema }: Elicitation): Question | undefined {
  const asked = question.safeParse({
    message: `${server} asks: ${visibleText(message)}`,
    requestedSchema: visibleSchema(schema),
  })
  if (!asked.success || JSON.stringify(asked.data).length > MAX_CHARS) return undefined
  const { properties, required = [] } = asked.data.requestedSchema
  const defaults = defaultsOf(schema)
  for (const [name, field] of Object.entries(properties)) {
    if (!Object.hasOwn(defaults, name)) continue
    const note = `If left empty: ${JSON.stringify(defaults[name])}`
    field.description = field.description === undefined ? note : `${field.description} (${note})`
  }
  const still = required.filter((name) => !Object.hasOwn(defaults, name))
  return { ...asked.data, requestedSchema: { type: 'object', properties, required: still } }
}

/** Empty fields get the default of the server's form. */
export function elicitationAnswer(answer: ApprovalAnswer, schema: unknown): ElicitationAnswer {
  if (answer.allowed) {
    const filled = Object.entries(answer.content ?? {}).filter(([, value]) => value !== '')
    return { action: 'accept', content: { ...defaultsOf(schema), ...Object.fromEntries(filled) } }
  }
  return { action: answer.by === 'user' ? 'decline' : 'cancel' }
}

const withDefaults = z.object({
  properties: z.record(
    z.string(),
    z.object({ default: questionContent.valueType.optional().catch(undefined) }),
  ),
})

function defaultsOf(schema: unknown): QuestionContent {
  const properties = withDefaults.safeParse(schema).data?.properties ?? {}
  const pairs = Object.entries(properties).map(([name, field]) => [name, field.default] as const)
  return Object.fromEntries(
    pairs.filter((pair): pair is [string, QuestionContent[string]] => pair[1] !== undefined),
  )
}
