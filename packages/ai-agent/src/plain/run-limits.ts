/** The limits of a run, before it begins: one that is no number would limit nothing. */
import { z } from 'zod'

/** `Infinity` is a way to say that there is no limit; `NaN` says nothing. */
const atLeast = (least: number) =>
  z.custom<number>((value) => typeof value === 'number' && value >= least, `a number from ${least} on`)
const amount = atLeast(0)
/** Longer, and Node waits for a millisecond. */
const wait = z
  .number()
  .min(0)
  .max(2 ** 31 - 1)
const limits = z.object({
  maxTurns: atLeast(1).optional(),
  maxConcurrentTools: z.int().min(1).max(10).optional(),
  toolTimeoutMs: atLeast(1).optional(),
  budgets: z
    .object({
      calls: amount.optional(),
      tokens: amount.optional(),
      cost: amount.optional(),
      promptMs: amount.optional(),
    })
    .optional(),
  retry: z
    .object({
      attempts: amount.optional(),
      baseMs: wait.optional(),
      capMs: wait.optional(),
      longestWaitMs: wait.optional(),
    })
    .optional(),
})

/** Throws `RangeError`, which names each number that cannot be meant. */
export function checkLimits(options: object): void {
  const { error } = limits.safeParse(options)
  if (error === undefined) return
  const problems = error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
  throw new RangeError(`This run cannot begin: ${problems.join('; ')}.`)
}
