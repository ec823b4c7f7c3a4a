/**
 * What a user may use up in a day, in all sessions together. A day begins at midnight UTC, and what was used up is in storage, so
 * that neither a restart nor a session that is deleted gives anything back.
 *
 * Time is what prompts ran, from their beginning to their end as the log has them, and as for one prompt: waiting for a person
 * counts, and so does a restart in the middle. Of a prompt that runs over midnight each day has its part; of two that run at once
 * both count, because what is limited is what the agent does and not the person's clock.
 */
import type { UserSpent } from '@sandlot/storage/sessions/usage'
import { counted, dollars, duration, notRun, number } from './budget-words.ts'

/** Absent: no limit. */
export interface DayBudgets {
  /** Answers of the model. */
  turns?: number
  calls?: number
  /** In and out, as the provider counted them. */
  tokens?: number
  /** US dollars. */
  cost?: number
  /** Milliseconds in which prompts ran. */
  ms?: number
}

const WORDS: Record<keyof DayBudgets, (limit: number) => string> = {
  turns: (limit) => counted(limit, 'model answer'),
  calls: (limit) => counted(limit, 'call'),
  tokens: (limit) => counted(limit, 'token'),
  cost: dollars,
  ms: (limit) => `${duration(limit)} of running time`,
}
/** In the order in which they are looked at before a request. */
const ALL = ['turns', 'calls', 'tokens', 'cost', 'ms'] as const
const AGAIN = 'starts again at midnight UTC'

/** The sentence with which a prompt ends whose user has used up a limit of the day, before its next request; else undefined. */
export function overDay(spent: UserSpent, day: DayBudgets): string | undefined {
  const limit = usedUp(spent, day, ALL)
  if (limit !== undefined)
    return `Your limit of ${limit} for today is used up. It ${AGAIN}; until then an administrator can raise it.`
  // As for one message: else each would have one answer for nothing.
  if (day.cost !== undefined && spent.unpriced > 0) return unknownToday(day.cost, spent.unpriced)
  return undefined
}

/**
 * Why a call must not start, for the model; else undefined. `behind`: calls that its prompt made after it, which count already. So do
 * those that other prompts made meanwhile: at the limit each of them may be refused, and together they never pass it.
 */
export function callOverDay(spent: UserSpent, behind: number, day: DayBudgets): string | undefined {
  const before = { ...spent, calls: spent.calls - behind - 1 }
  const limit = usedUp(before, day, ['calls', 'ms'])
  return limit === undefined
    ? undefined
    : notRun(`the user’s limit of ${limit} for today is used up. It ${AGAIN}`)
}

/** True when a limit of the day can refuse a call. */
export function limitsCalls({ calls, ms }: DayBudgets): boolean {
  return calls !== undefined || ms !== undefined
}

/** Midnight UTC before `now`, epoch milliseconds. */
export function startOfDay(now: number): number {
  return now - (now % 86_400_000)
}

function usedUp(spent: UserSpent, day: DayBudgets, which: readonly (keyof DayBudgets)[]): string | undefined {
  for (const name of which) {
    const limit = day[name]
    if (limit !== undefined && spent[name] >= limit) return WORDS[name](limit)
  }
  return undefined
}

function unknownToday(most: number, answers: number): string {
  const which = answers === 1 ? 'one of today’s answers' : `${number(answers)} of today’s answers`
  return `Nobody knows what ${which} cost: the provider did not count their tokens, and you have a limit of ${dollars(most)} a day. It ${AGAIN}; whoever runs Sandlot can limit tokens, calls or time instead.`
}
