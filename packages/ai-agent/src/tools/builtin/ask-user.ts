import {
  ANSWER_OPTION,
  DECLINE_OPTION,
  type Question,
  type QuestionContent,
  type QuestionField,
  questionContent,
} from '@sandlot/shared/chat/question'
import { z } from 'zod'
import { ToolError } from '../tool-error.ts'
import {
  defineTool,
  firstLine,
  textArg,
  type ApprovalAnswer,
  type ApprovalOption,
  type ToolOutcome,
} from '../tool.ts'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import { hasAsked } from '../has-asked.ts'

const choice = z.string().min(1).max(200)
const field = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9_]{0,39}$/, 'must be a short name of letters, digits and _')
    .describe('Its name in the answer.'),
  label: z.string().min(1).max(200).optional().describe('What the user reads beside it.'),
  type: z
    .enum(['text', 'number', 'yes_no', 'choice', 'choices'])
    .describe('What to fill in; choice is one and choices any of the listed ones.'),
  choices: z.array(choice).min(2).max(20).optional().describe('For choice and choices.'),
  required: z.boolean().default(false).describe('It must be filled in.'),
})
const input = z.strictObject({
  question: z.string().min(1).max(2000).describe('The question, complete in itself.'),
  choices: z
    .array(choice)
    .min(2)
    .max(10)
    .optional()
    .describe('Answers to choose one of. The user may also answer in their own words.'),
  fields: z
    .array(field)
    .min(1)
    .max(8)
    .optional()
    .describe('A small form, in place of choices, where several things are needed at once.'),
})
/** Absent when the user chose not to answer. */
const output = z.strictObject({ content: questionContent }).optional()

/** After this the question expires; a day, as for approvals. */
const EXPIRES_MS = 86_400_000

export const askUser = defineTool({
  name: 'ask_user',
  description:
    'Asks the user a question and waits for the answer: with choices, a small form, or as plain text. Only when you cannot go on without it; ' +
    'what you can find out yourself is not asked.',
  kind: 'other',
  input,
  output,
  // It changes nothing, and asking for approval to ask would be absurd.
  readOnly: true,
  runs: {
    hint: 'When only the user can decide something and a guess would be costly, ask with ask_user; otherwise decide and say what you assumed.',
  },
  title: (args) => firstLine(textArg(args, 'question') ?? 'Ask the user'),
  async *execute(args, ctx) {
    const question = questionOf(args)
    if (!hasAsked(ctx)) {
      const expiresAt = ctx.now() + EXPIRES_MS
      yield { type: 'approval_asked', options: optionsOf(args.choices), why: [], expiresAt, question }
    }
    const answer = await orAborted(ctx.ask(), ctx.signal)
    return outcomeOf(answer, args.choices)
  },
})

function questionOf(args: z.infer<typeof input>): Question {
  const names = args.fields?.map(({ name }) => name) ?? []
  if (args.choices !== undefined && args.fields !== undefined)
    throw new ToolError('invalid_arguments', 'Give choices or fields, not both. Nothing was asked.')
  if (new Set(names).size < names.length)
    throw new ToolError('invalid_arguments', 'Two fields have the same name. Nothing was asked.')
  const properties =
    args.fields === undefined
      ? { answer: args.choices === undefined ? text() : { ...text(), enum: args.choices } }
      : Object.fromEntries(args.fields.map((one) => [one.name, fieldOf(one)]))
  const required = args.fields?.filter((one) => one.required).map(({ name }) => name) ?? ['answer']
  return {
    message: args.question.toWellFormed(),
    requestedSchema: { type: 'object', properties, ...(required.length === 0 ? {} : { required }) },
  }
}

function text(): QuestionField {
  return { type: 'string', title: 'Answer' }
}

function fieldOf({ name, label, type, choices }: z.infer<typeof field>): QuestionField {
  const title = (label ?? name).toWellFormed()
  if ((type === 'choice' || type === 'choices') && choices === undefined)
    throw new ToolError('invalid_arguments', `The field ${name} needs choices. Nothing was asked.`)
  switch (type) {
    case 'text':
      return { type: 'string', title }
    case 'number':
      return { type: 'number', title }
    case 'yes_no':
      return { type: 'boolean', title }
    case 'choice':
      return { type: 'string', title, enum: choices }
    case 'choices':
      return { type: 'array', title, items: { type: 'string', enum: choices } }
  }
}

/** Choices are options of their own, so that a client that only knows permissions can show them. */
function optionsOf(choices: readonly string[] = []): ApprovalOption[] {
  return [
    ...choices.map((name, index) => ({ optionId: `choice_${index + 1}`, name, kind: 'allow_once' as const })),
    { optionId: ANSWER_OPTION, name: 'Answer', kind: 'allow_once' },
    { optionId: DECLINE_OPTION, name: 'Skip', kind: 'reject_once' },
  ]
}

function outcomeOf(answer: ApprovalAnswer, choices: readonly string[] = []): ToolOutcome {
  if (answer.allowed) {
    const chosen = choices[Number(/^choice_(\d+)$/.exec(answer.optionId ?? '')?.[1] ?? 0) - 1]
    const content = chosen === undefined ? (answer.content ?? {}) : { answer: chosen }
    return { status: 'completed', forModel: `The user answered:\n${contentText(content)}`, data: { content } }
  }
  if (answer.by === 'user') {
    const said =
      answer.reason === undefined || answer.reason.trim() === '' ? '' : ` They said: ${answer.reason}`
    return { status: 'completed', forModel: `The user chose not to answer.${said} Go on with what you know.` }
  }
  if (answer.by === 'cancel')
    return {
      status: 'failed',
      reason: 'cancelled',
      forModel: 'The user ended the question without an answer.',
    }
  const why = answer.by === 'expiry' ? 'Nobody answered in time.' : 'Nobody can be shown a question here.'
  return {
    status: 'failed',
    reason: 'denied',
    forModel: `${why} Go on with a sensible assumption and say so, or end your turn with the question as text.`,
    data: { by: answer.by },
  }
}

function contentText(content: QuestionContent): string {
  const entries = Object.entries(content)
  const [only] = entries
  if (entries.length === 1 && only !== undefined && only[0] === 'answer') return shown(only[1])
  return entries.length === 0
    ? '(nothing was filled in)'
    : entries.map(([name, value]) => `${name}: ${shown(value)}`).join('\n')
}

function shown(value: QuestionContent[string]): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return Array.isArray(value) ? value.join(', ') : String(value)
}
