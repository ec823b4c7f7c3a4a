/**
 * Nothing behind this policy sees arguments that do not fit the tool's schema. Defaults are filled
 * in here.
 */
import { ToolError } from '../../tools/tool-error.ts'
import { argumentNames, checkArguments, isZodInput, toolParameters } from '../../tools/tool-schema.ts'
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
      const { args, notes } = await fittingArguments(call, ctx.ids.userId)
      const outcome = yield* next({ ...call, args }, ctx)
      if (notes.length === 0) return outcome
      return { ...outcome, forModel: [outcome.forModel, ...notes].join('\n') }
    }
}

async function fittingArguments(call: ToolCall, userId: string): Promise<CoercedArguments> {
  const { input } = call.tool
  const first = await checkArguments(input, call.args, userId)
  if ('args' in first) return { args: first.args, notes: [] }
  const { problems, error } = first
  if (isZodInput(input) && error === undefined) throw doNotFit(call, problems)
  const { args, notes } =
    error === undefined ? coerceToSchema(call.args, toolParameters(input)) : coerceArguments(call.args, error)
  const second = await checkArguments(input, args, userId)
  if ('args' in second) return { args: second.args, notes }
  throw doNotFit(call, second.problems)
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
