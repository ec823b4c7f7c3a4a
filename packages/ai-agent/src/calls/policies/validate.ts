/**
 * Nothing behind this policy sees arguments that do not fit the tool's schema. Defaults are filled
 * in here.
 */
import type { z } from 'zod'
import { ToolError } from '../../tools/tool-error.ts'
import {
  type JsonSchemaInput,
  argumentNames,
  fitProblems,
  holdNumbers,
  isZodInput,
  problemsOf,
} from '../../tools/tool-schema.ts'
import type { Policy, ToolCall } from '../../tools/tool.ts'
import { type CoercedArguments, coerceArguments, coerceToSchema } from './coerce-arguments.ts'

const SHOWN_PROBLEMS = 10

export function validate(): Policy {
  return (next) =>
    async function* validated(call, ctx) {
      // A call that was cancelled before its turn came is cancelled, whatever else is wrong with
      // it.
      ctx.signal.throwIfAborted()
      if (call.refusal !== undefined) throw new ToolError(call.refusal.reason, call.refusal.message)
      const { input } = call.tool
      const held = holdNumbers(input, call.args)
      if ('problems' in held) throw doNotFit(call, held.problems)
      const given = { ...call, args: held.args }
      const { userId } = ctx.ids
      const { args, notes } = isZodInput(input)
        ? readByZod(given, input)
        : await readBySchema(given, input, userId)
      const outcome = yield* next({ ...call, args }, ctx)
      if (notes.length === 0) return outcome
      return { ...outcome, forModel: [outcome.forModel, ...notes].join('\n') }
    }
}

function readByZod(call: ToolCall, input: z.ZodObject): CoercedArguments {
  const first = input.safeParse(call.args)
  if (first.success) return { args: first.data, notes: [] }
  const { args, notes } = coerceArguments(call.args, first.error)
  const held = holdNumbers(input, args)
  if ('problems' in held) throw doNotFit(call, held.problems)
  const second = input.safeParse(held.args)
  if (second.success) return { args: second.data, notes }
  throw doNotFit(call, problemsOf(input, second.error))
}

/** A server fills in its own defaults. */
async function readBySchema(
  call: ToolCall,
  input: JsonSchemaInput,
  userId: string,
): Promise<CoercedArguments> {
  if ((await fitProblems(input, call.args, userId)).length === 0) return { args: call.args, notes: [] }
  const coerced = coerceToSchema(call.args, input.parameters)
  const held = holdNumbers(input, coerced.args)
  const problems = 'problems' in held ? held.problems : await fitProblems(input, held.args, userId)
  if (problems.length === 0) return coerced
  throw doNotFit(call, problems)
}

function doNotFit({ name, tool }: ToolCall, problems: readonly string[]): ToolError {
  const known = argumentNames(tool.input)
  const shown = problems.slice(0, SHOWN_PROBLEMS).map((problem) => `- ${problem}`)
  const more = problems.length > SHOWN_PROBLEMS ? [`- and ${problems.length - SHOWN_PROBLEMS} more`] : []
  const names =
    known.length === 0 ? `${name} takes no arguments.` : `The arguments of ${name} are: ${known.join(', ')}.`
  const text = [`The arguments do not fit. Nothing was run.`, ...shown, ...more, names].join('\n')
  return new ToolError('invalid_arguments', text, { unasked: true })
}
