/** Nothing behind this policy sees arguments that do not fit the tool's schema. Defaults are filled in here. */
import { nearest } from '@sandlot/shared/config-names'
import type { z } from 'zod'
import { CallFailure } from '../tools/call-failure.ts'
import type { Policy } from '../tools/tool.ts'
import { coerceArguments } from './coerce-arguments.ts'

const SHOWN_PROBLEMS = 10

export function validate(): Policy {
  return (next) =>
    async function* validated(call, ctx) {
      // A call that was cancelled before its turn came is cancelled, whatever else is wrong with it.
      ctx.signal.throwIfAborted()
      if (call.refusal !== undefined) throw new CallFailure(call.refusal.reason, call.refusal.message)
      const { input } = call.tool
      const first = input.safeParse(call.args)
      if (first.success) return yield* next({ ...call, args: first.data }, ctx)

      const coerced = coerceArguments(call.args, first.error)
      const second = input.safeParse(coerced.args)
      if (!second.success)
        throw new CallFailure('invalid_arguments', problemText(call.name, input, second.error))
      const outcome = yield* next({ ...call, args: second.data }, ctx)
      return { ...outcome, forModel: [outcome.forModel, ...coerced.notes].join('\n') }
    }
}

function problemText(name: string, input: z.ZodObject, error: z.ZodError): string {
  const known = Object.keys(input.shape)
  const problems = error.issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys' && issue.path.length === 0)
      return issue.keys.map((key) => unknownText(key, known))
    return [`${issue.path.length === 0 ? 'arguments' : issue.path.join('.')}: ${issue.message}`]
  })
  const shown = problems.slice(0, SHOWN_PROBLEMS).map((problem) => `- ${problem}`)
  const more = problems.length > SHOWN_PROBLEMS ? [`- and ${problems.length - SHOWN_PROBLEMS} more`] : []
  const names =
    known.length === 0 ? `${name} takes no arguments.` : `The arguments of ${name} are: ${known.join(', ')}.`
  return [`The arguments do not fit. Nothing was run.`, ...shown, ...more, names].join('\n')
}

function unknownText(key: string, known: readonly string[]): string {
  const shown = key.slice(0, 100)
  const meant = nearest(shown, known)
  return `there is no argument ${JSON.stringify(shown)}${meant === undefined ? '' : `; did you mean ${meant}?`}`
}
