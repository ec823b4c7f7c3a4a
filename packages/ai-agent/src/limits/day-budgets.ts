/**
 * What a user may use up in a day, in all sessions together. A day begins at midnight UTC, and what
 * was used up is in storage, so that neither a restart nor a session that is deleted gives anything
 * back.
 *
 * Time is what prompts ran, from their beginning to their end as the log has them, and as for one
 * prompt: waiting for a person counts, and so does a restart in the middle. Of a prompt that runs
 * over midnight each day has its part; of two that run at once both count, because what is limited
 * is what the agent does and not the person's clock.
 */
import type { UserSpent } from '@sandlot/storage/sessions/usage'
import { type SessionEvent, metaOf, sandlotEventOf } from '@sandlot/shared/events'

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

/**
 * The sentence with which a prompt ends whose user has used up a limit of the day, before its next
 * request; else undefined.
 */
export function overDay(spent: UserSpent, day: DayBudgets): string | undefined {
  const limit = usedUp(spent, day, ALL)
  if (limit !== undefined)
    return `Your limit of ${limit} for today is used up. It ${AGAIN}; until then an administrator can raise it.`
  // As for one message: else each would have one answer for nothing.
  if (day.cost !== undefined && spent.unpriced > 0) return unknownToday(day.cost, spent.unpriced)
  return undefined
}

/**
 * Why a call must not start, for the model; else undefined. `behind`: calls that its prompt made
 * after it, which count already. So do those that other prompts made meanwhile: at the limit each
 * of them may be refused, and together they never pass it.
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
  return `The cost of ${which} is unknown: the provider did not count their tokens, and you have a limit of ${dollars(most)} a day. It ${AGAIN}; the operator of Sandlot can limit tokens, calls or time instead.`
}

/** How limits are said, to people and to the model. */
export function notRun(why: string): string {
  return `The call was not started: ${why}.`
}

/** `3 calls`, `1 call`. */
export function counted(value: number, one: string): string {
  return `${number(value)} ${value === 1 ? one : `${one}s`}`
}

export function duration(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  return seconds < 120 ? `${seconds} seconds` : `${Math.round(seconds / 60)} minutes`
}

export function number(value: number): string {
  return value.toLocaleString('en-US')
}

export function dollars(value: number): string {
  return `$${value.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 6 })}`
}

/**
 * True when this group of events, which is stored at once, has an answer without token counts: a
 * limit in dollars must know of it. Not an answer that was cut off: its provider could not count,
 * and a Stop must not exhaust a day's budget.
 */
export function isUncountedAnswer(group: readonly SessionEvent[]): boolean {
  return group.some(bringsAnswer) && !group.some(isCount) && !group.some(isCutOff)
}

function bringsAnswer(event: SessionEvent): boolean {
  const { turn, event: happened } = metaOf(event)
  // A requested summary is an answer as well.
  if (happened?.type === 'compacted') return happened.why === 'asked' && happened.summary !== ''
  if (turn === undefined) return false
  return (
    event.sessionUpdate === 'agent_thought_chunk' ||
    event.sessionUpdate === 'agent_message_chunk' ||
    event.sessionUpdate === 'tool_call' ||
    (happened?.type === 'turn_ended' && happened.callIds.length === 0)
  )
}

function isCount(event: SessionEvent): boolean {
  return event.sessionUpdate === 'usage_update' && metaOf(event).usage !== undefined
}

function isCutOff(event: SessionEvent): boolean {
  const happened = sandlotEventOf(event)
  return happened?.type === 'prompt_ended' && ['cancelled', 'interrupted', 'loop'].includes(happened.reason)
}
