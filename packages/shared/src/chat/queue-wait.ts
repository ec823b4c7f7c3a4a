/** The line: people take turns where the host or a model has no room for all of their prompts. */
import { z } from 'zod'

/** What there is not enough of for everybody. */
const lineWhy = z.enum(['places', 'model', 'sandboxes'])

export const queueWait = z.object({
  /** From 1; 0: its turn has come. */
  place: z.number().int().nonnegative(),
  /** Prompts that wait for the same, this one included. */
  of: z.number().int().nonnegative(),
  why: lineWhy,
  /** How many there are of what is taken, where that is known. */
  limit: z.number().int().positive().optional(),
  /** The model that takes no more requests. */
  model: z.string().optional(),
  /** Milliseconds from the event's time until the model takes requests again, as far as it said. */
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

/** A line, without a full stop. */
export function queueText(wait: QueueWait): string {
  return `${ordinal(wait.place)} in line: ${reasonWords(wait)}`
}
