/**
 * Budgets of a user for a day or a month, over all sessions, and those of a team or of everybody.
 * Periods begin at midnight UTC. Use is stored, so that neither a restart nor a deleted session
 * gives anything back.
 *
 * Time is the run time of prompts from start to end by their log: waiting for a person counts, and
 * so does a restart in between. A prompt over midnight counts in part for each day; two at once
 * both count, because the limit is on the agent's work and not on the person's clock.
 */
import type { SpentReads, SpentTogether, UserSpent } from '@sandlot/storage/usage/usage'
import { type SessionEvent, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'

export type Period = 'day' | 'month'

/** Limits of one user. Absent: no limit. */
export interface PeriodBudgets {
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

/** Limits of a team, or of the deployment: the sum over its users. */
export interface BudgetsTogether extends Partial<Record<Period, PeriodBudgets>> {
  of: { kind: 'team'; id: string; name: string } | { kind: 'deployment' }
}

/** Limits of the prompt's user, and of the teams that they are in. */
export interface LastingBudgets extends Partial<Record<Period, PeriodBudgets>> {
  together?: readonly BudgetsTogether[]
}

/** Use since the beginning of the day or the month. */
export interface Spent {
  own(period: Period): Promise<UserSpent>
  /** Running time only where `limits` has some: it costs a look at every run. */
  together(of: BudgetsTogether['of'], period: Period, limits: PeriodBudgets): Promise<SpentTogether>
}

export const PERIODS: readonly Period[] = ['day', 'month']
const IN_PERIOD: Record<Period, string> = { day: 'for today', month: 'for this month' }
const WORDS: Record<keyof PeriodBudgets, (limit: number) => string> = {
  turns: (limit) => counted(limit, 'model answer'),
  calls: (limit) => counted(limit, 'call'),
  tokens: (limit) => counted(limit, 'token'),
  cost: dollars,
  ms: (limit) => `${duration(limit)} of running time`,
}
/** In the order in which they are looked at before a request. */
const ALL = ['turns', 'calls', 'tokens', 'cost', 'ms'] as const

/** From storage. */
export function spentOf(usage: SpentReads, userId: string, now: number): Spent {
  return {
    own: (period) => usage.spentSince(userId, startOf(period, now), now),
    together: (of, period, { ms }) =>
      usage.spentTogether(of, startOf(period, now), ms === undefined ? undefined : now),
  }
}

/**
 * The sentence with which a prompt ends whose user, or one of whose teams, has used up a limit,
 * before its next request; else undefined.
 */
export async function overPeriods(
  budgets: LastingBudgets,
  spent: Spent,
  now: number,
): Promise<string | undefined> {
  const dollarsOf = costLimit(budgets)
  for (const period of PERIODS) {
    const own = budgets[period]
    if (own === undefined && (period === 'month' || dollarsOf === undefined)) continue
    const used = await spent.own(period)
    const over = own && overPeriod(used, own, period, now)
    if (over !== undefined) return over
    // The rule for one message: otherwise each would have one answer for free.
    if (period === 'day' && dollarsOf !== undefined && used.unpriced > 0)
      return unknownToday(dollarsOf, used.unpriced)
  }
  for (const { of, ...together } of budgets.together ?? [])
    for (const period of PERIODS) {
      const limits = together[period]
      const over =
        limits && overTogether(await spent.together(of, period, limits), limits, { of, period, now })
      if (over !== undefined) return over
    }
  return undefined
}

function overPeriod(
  spent: UserSpent,
  limits: PeriodBudgets,
  period: Period,
  now: number,
): string | undefined {
  const limit = usedUp(spent, limits, ALL)
  return limit && `Your limit of ${limit} ${IN_PERIOD[period]} is used up. ${startsAgain(period, now)}`
}

function overTogether(
  spent: SpentTogether,
  limits: PeriodBudgets,
  { of, period, now }: { of: BudgetsTogether['of']; period: Period; now: number },
): string | undefined {
  const limit = usedUp(spent, limits, ALL)
  return limit && `The ${limitTogether(limit, of, period)} is used up. ${startsAgain(period, now)}`
}

function limitTogether(limit: string, of: BudgetsTogether['of'], period: Period): string {
  const whose = of.kind === 'team' ? `the team “${of.name}”` : 'everybody on this Sandlot'
  return `limit of ${limit} ${IN_PERIOD[period]} that ${whose} has together`
}

/**
 * The reason that a call must not start, for the model; else undefined. `behind`: calls that its
 * prompt made after it, which count already. So do concurrent calls of other prompts: at the limit
 * each of them may be refused, and together they never pass it.
 */
export async function callOverPeriods(
  budgets: LastingBudgets,
  spent: Spent,
  behind: number,
  now: number,
): Promise<string | undefined> {
  const used = (all: Pick<UserSpent, 'calls' | 'ms'>, limits: PeriodBudgets): string | undefined =>
    usedUp({ ...all, calls: all.calls - behind - 1 }, limits, ['calls', 'ms'])
  for (const period of PERIODS) {
    const limits = budgets[period]
    if (limits === undefined || !limitsCalls(limits)) continue
    const limit = used(await spent.own(period), limits)
    if (limit !== undefined)
      return notRun(`the user’s limit of ${limit} ${IN_PERIOD[period]} is used up. It ${again(period, now)}`)
  }
  for (const { of, ...together } of budgets.together ?? [])
    for (const period of PERIODS) {
      const limits = together[period]
      if (limits === undefined || !limitsCalls(limits)) continue
      const limit = used(await spent.together(of, period, limits), limits)
      if (limit !== undefined)
        return notRun(`the ${limitTogether(limit, of, period)} is used up. It ${again(period, now)}`)
    }
  return undefined
}

/** True when such a limit can refuse a call. */
function limitsCalls({ calls, ms }: PeriodBudgets): boolean {
  return calls !== undefined || ms !== undefined
}

/** Midnight UTC at which the day or the month of `now` began, epoch milliseconds. */
function startOf(period: Period, now: number): number {
  const at = new Date(now)
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), period === 'day' ? at.getUTCDate() : 1)
}

/** Midnight UTC at which the next one begins. */
export function endOf(period: Period, now: number): number {
  const at = new Date(startOf(period, now))
  return period === 'day'
    ? Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() + 1)
    : Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 1)
}

function again(period: Period, now: number): string {
  const first = new Date(endOf('month', now))
  const day = first.toLocaleDateString('en-GB', { day: 'numeric', month: 'long', timeZone: 'UTC' })
  return period === 'day' ? 'starts again at midnight UTC' : `starts again on ${day} at midnight UTC`
}

function startsAgain(period: Period, now: number): string {
  return `It ${again(period, now)}; until then an administrator can raise it.`
}

function usedUp<Name extends keyof PeriodBudgets>(
  spent: Readonly<Record<Name, number>>,
  limits: Partial<Record<Name, number>>,
  which: readonly Name[],
): string | undefined {
  for (const name of which) {
    const limit = limits[name]
    if (limit !== undefined && spent[name] >= limit) return WORDS[name](limit)
  }
  return undefined
}

/** The first limit in dollars, as words; undefined: nothing is limited in dollars. */
export function costLimit({ day, month, together = [] }: LastingBudgets): string | undefined {
  const say = (cost: number | undefined, words: string): string[] =>
    cost === undefined ? [] : [`${dollars(cost)} ${words}`]
  return [
    ...say(day?.cost, 'a day'),
    ...say(month?.cost, 'a month'),
    ...together.flatMap((one) => [
      ...say(one.day?.cost, 'a day for all together'),
      ...say(one.month?.cost, 'a month for all together'),
    ]),
  ][0]
}

function unknownToday(limit: string, answers: number): string {
  const which = answers === 1 ? 'one of today’s answers' : `${number(answers)} of today’s answers`
  return `The cost of ${which} is unknown: the provider did not count their tokens, and there is a limit of ${limit}. You can go on after midnight UTC; the operator of Sandlot can limit the turns or time of a message instead.`
}

/** Texts of limits, for people and for the model. */
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
