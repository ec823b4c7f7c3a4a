/** Queued prompts: the host or a model has no capacity for all prompts at once. */
import { z } from 'zod'

/** The scarce resource. */
const queueReason = z.enum(['places', 'model', 'sandboxes'])

export const queueWait = z.object({
  /** From 1; 0: it starts now. */
  place: z.number().int().nonnegative(),
  /** Prompts in this queue, including this one. */
  of: z.number().int().nonnegative(),
  why: queueReason,
  /** The capacity, if known. */
  limit: z.number().int().positive().optional(),
  /** The model that accepts no more requests. */
  model: z.string().optional(),
  /**
   * Milliseconds from the event's time until the model accepts requests again, as reported by it.
   */
  waitMs: z.number().nonnegative().optional(),
})
export type QueueWait = z.infer<typeof queueWait>

function reasonWords({ why, limit, model }: QueueWait): string {
  switch (why) {
    case 'places':
      return limit === 1 ? 'the one place is taken' : `all ${limit ?? ''} places are taken`
    case 'model':
      return `${model ?? 'the model'} takes no more requests for now`
    case 'sandboxes':
      return limit === undefined
        ? 'all sandboxes are in use'
        : limit === 1
          ? 'the one sandbox is in use'
          : `all ${limit} sandboxes are in use`
  }
}

/** `1st`, `2nd`, `11th`. */
function ordinal(n: number): string {
  const tens = n % 100
  const ending = tens >= 11 && tens <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th')
  return `${n}${ending}`
}

/** One line, without a full stop. */
export function queueText(wait: QueueWait): string {
  return `${ordinal(wait.place)} in line: ${reasonWords(wait)}`
}
