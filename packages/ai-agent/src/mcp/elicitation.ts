/** A server that asks the user for something in the middle of a call: the same question as the tool `ask_user` asks. */
import { ANSWER_OPTION, DECLINE_OPTION, type Question, question } from '@sandlot/shared/question'
import type { ApprovalAnswer, ApprovalOption } from '../tools/tool.ts'

export interface Elicitation {
  /** In the server's words. */
  message: string
  /** A flat JSON Schema of the answer: texts, numbers, choices. */
  schema: unknown
}

export type ElicitationAnswer =
  | { action: 'accept'; content: Record<string, string | number | boolean | string[]> }
  | { action: 'decline' | 'cancel' }

/** Answers one; never rejects. */
export type Elicit = (asked: Elicitation) => Promise<ElicitationAnswer>

/** Milliseconds. A server waits with everything it holds. */
export const QUESTION_EXPIRES_MS = 600_000
const MAX_CHARS = 8_000

export const QUESTION_OPTIONS: readonly ApprovalOption[] = [
  { optionId: ANSWER_OPTION, name: 'Answer', kind: 'allow_once' },
  { optionId: DECLINE_OPTION, name: 'Decline', kind: 'reject_once' },
]

/** What the user is asked; undefined when it is no form that can be shown. Says who asks: it is not us. */
export function questionOf(server: string, { message, schema }: Elicitation): Question | undefined {
  const asked = question.safeParse({
    message: `${server} asks: ${message}`.toWellFormed(),
    requestedSchema: schema,
  })
  return asked.success && JSON.stringify(asked.data).length <= MAX_CHARS ? asked.data : undefined
}

export function elicitationAnswer(answer: ApprovalAnswer): ElicitationAnswer {
  if (answer.allowed) return { action: 'accept', content: answer.content ?? {} }
  return { action: answer.by === 'user' ? 'decline' : 'cancel' }
}
