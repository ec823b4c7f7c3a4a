/**
 * Budgets of a prompt. Pure functions over the log, so that a restart changes nothing: time counts
 * from `prompt_started`, tokens and cost from the providers' counts.
 */
import { type SessionEvent, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import { growingFold } from '../history/growing-fold.ts'
import {
  type LastingBudgets,
  costLimit,
  counted,
  dollars,
  duration,
  notRun,
  number,
} from './period-budgets.ts'

/** Limits of one prompt. Absent: no limit. */
export interface PromptBudgets {
  calls?: number
  /** In and out, as the provider counted them. */
  tokens?: number
  /** US dollars. */
  cost?: number
  /** Milliseconds from its beginning; waiting for a person counts. */
  promptMs?: number
}

export interface Budgets extends PromptBudgets, LastingBudgets {}

interface PromptSpent {
  calls: number
  tokens: number
  /** US dollars of the answers of which they are known. */
  cost: number
  /** Answers of unknown cost. */
  unpriced: number
  /** Epoch milliseconds; undefined when the log has no beginning of it. */
  startedAt: number | undefined
}

export function spentBy(log: readonly SessionEvent[], promptId: string): PromptSpent {
  const spent: PromptSpent = { calls: 0, tokens: 0, cost: 0, unpriced: 0, startedAt: undefined }
  const answered = new Set<number | undefined>()
  const counted = new Set<number | undefined>()
  for (const [place, event] of log.entries()) {
    const meta = metaOf(event)
    if (meta.promptId !== promptId) continue
    if (isOfAnswer(event)) answered.add(meta.turn)
    if (event.sessionUpdate === 'tool_call') spent.calls++
    if (sandlotEventOf(event)?.type === 'prompt_started') spent.startedAt = meta.at
    // Without counts it only says how full the window is.
    if (event.sessionUpdate !== 'usage_update' || meta.usage === undefined) continue
    if (meta.cost === undefined) spent.unpriced++
    if (!isOfSummary(log[place + 1])) counted.add(meta.turn)
    spent.tokens += (meta.usage?.input ?? 0) + (meta.usage?.output ?? 0)
    spent.cost += meta.cost ?? 0
  }
  // A turn that was not counted has no usage of its own.
  spent.unpriced += [...answered].filter((turn) => !counted.has(turn)).length
  return spent
}

/** The calls that a prompt has made, and when it began. */
interface PromptCalls {
  /** From 1, by call. */
  places: ReadonlyMap<string, number>
  /** Epoch milliseconds; undefined when the log has no beginning of it. */
  startedAt: number | undefined
}

const NO_CALLS: PromptCalls = { places: new Map(), startedAt: undefined }

/** Asked before each call, so each asking reads only what is new. */
export function callsOf(log: readonly SessionEvent[], promptId: string): PromptCalls {
  return foldCalls(log).get(promptId) ?? NO_CALLS
}

const foldCalls = growingFold(
  () => new Map<string, { places: Map<string, number>; startedAt: number | undefined }>(),
  (prompts, event) => {
    const { promptId, at } = metaOf(event)
    if (promptId === undefined) return
    const begins = sandlotEventOf(event)?.type === 'prompt_started'
    if (!begins && event.sessionUpdate !== 'tool_call') return
    const prompt = prompts.get(promptId) ?? { places: new Map<string, number>(), startedAt: undefined }
    prompts.set(promptId, prompt)
    if (begins) prompt.startedAt = at
    if (event.sessionUpdate === 'tool_call') prompt.places.set(event.toolCallId, prompt.places.size + 1)
  },
)

/** Usage of a summary is stored right before it, in the turn whose answer comes after it. */
function isOfSummary(next: SessionEvent | undefined): boolean {
  return next !== undefined && sandlotEventOf(next)?.type === 'compacted'
}

function isOfAnswer({ sessionUpdate }: SessionEvent): boolean {
  return (
    sessionUpdate === 'agent_message_chunk' ||
    sessionUpdate === 'agent_thought_chunk' ||
    sessionUpdate === 'tool_call'
  )
}

/**
 * The sentence with which a prompt ends that has used up what it may, before its next request; else
 * undefined.
 */
export function overBudget(spent: PromptSpent, budgets: Budgets, now: number): string | undefined {
  const { calls, tokens, cost, promptMs } = budgets
  if (calls !== undefined && spent.calls >= calls) return ended(callsText(calls))
  if (tokens !== undefined && spent.tokens >= tokens)
    return ended(`${number(tokens)} tokens, the limit for one message`)
  if (cost !== undefined && spent.cost >= cost) return ended(`${dollars(cost)}, the limit for one message`)
  // Unknown is not zero: a limit that cannot be checked ends it too.
  const most = cost === undefined ? costLimit(budgets) : dollars(cost)
  if (most !== undefined && spent.unpriced > 0) return unknownCost(most)
  if (promptMs !== undefined && isLate(spent, promptMs, now)) return ended(timeText(promptMs))
  return undefined
}

function unknownCost(most: string): string {
  return `Stopped, because the cost of the last answer is unknown: the provider did not count its tokens, and there is a limit of ${most}. The operator of Sandlot can limit turns or time instead.`
}

/**
 * Why the call at this place (from 1) of the prompt must not start, for the model; else undefined.
 */
export function callOverBudget(
  place: number,
  prompt: Pick<PromptCalls, 'startedAt'>,
  { calls, promptMs }: Budgets,
  now: number,
): string | undefined {
  if (calls !== undefined && place > calls) return notRun(`this came after ${callsText(calls)}`)
  if (promptMs !== undefined && isLate(prompt, promptMs, now))
    return notRun(`this came after ${timeText(promptMs)}`)
  return undefined
}

function isLate({ startedAt }: Pick<PromptCalls, 'startedAt'>, promptMs: number, now: number): boolean {
  return startedAt !== undefined && now - startedAt >= promptMs
}

function ended(what: string): string {
  return `Stopped after ${what}. Nothing is lost; write “go on” to let it continue.`
}

function callsText(calls: number): string {
  return `${counted(calls, 'call')}, the limit for one message`
}

function timeText(ms: number): string {
  return `${duration(ms)}, the limit for one message`
}
