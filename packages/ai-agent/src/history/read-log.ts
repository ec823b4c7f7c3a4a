/**
 * The agent's folds of the log: how calls went, where a prompt stands, what waits. Pure; the log is
 * the truth, and nothing here keeps state. What the model gets is in `history/model-messages.ts`.
 */
import type { Mode } from '@sandlot/shared/chat/mode'
import { type EndReason, type FailureReason, failureOf } from '@sandlot/shared/chat/reasons'
import {
  isLive,
  isOutcome,
  metaOf,
  sandlotEventOf,
  seqOf,
  type SessionEvent,
} from '@sandlot/shared/chat/events'
import type { OnError, SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import type { Author } from '@sandlot/shared/chat/shares'
import {
  isEmpty,
  modelCallOf,
  turnsOf,
  turnsSinceLastUserMessage,
  type CallRecord,
} from './model-messages.ts'
import type { ModelCall, ModelImage } from '../model/model.ts'
import { isStuck } from './no-progress.ts'

// ── How calls went
// ──────────────────────────────────────────────────────────────────────────────────────

/** The result of one call of a turn. */
export interface ExecutionResult {
  callId: string
  name: string
  status: 'running' | 'completed' | 'failed'
  reason?: FailureReason
  /** The text for the model. Empty while it runs. */
  text: string
  truncated: boolean
  outputUrl?: string
  waitMs?: number
  runMs?: number
}

export function executionResult({ call, outcome }: CallRecord): ExecutionResult {
  const base = { callId: call.toolCallId, name: call.name }
  if (outcome === undefined) return { ...base, status: 'running', text: '', truncated: false }
  const meta = metaOf(outcome)
  const { outputInfo, timing } = meta
  return {
    ...base,
    status: outcome.status === 'completed' ? 'completed' : 'failed',
    reason: failureOf(meta),
    text: outcome.rawOutput?.forModel ?? '',
    truncated: outputInfo?.truncated ?? false,
    outputUrl: outputInfo?.url,
    ...(timing === undefined ? {} : { waitMs: timing.waitMs, runMs: timing.runMs }),
  }
}

// ── Where a prompt stands
// ───────────────────────────────────────────────────────────────────────────────

/** The next step of the loop. */
type Step =
  /** Ask the model for this turn. */
  | { do: 'ask'; turn: number }
  /** Run the calls of this turn that have no outcome. */
  | { do: 'run'; turn: number; calls: ModelCall[] }
  /** Every call of this turn has its outcome; say so. */
  | { do: 'close'; turn: number; callIds: string[] }
  /** The model has answered, or will not. */
  | { do: 'end'; answered: boolean }
  | { do: 'stop_at_max_turns' }
  /** It repeated a circle, was warned, and continued. */
  | { do: 'stop_in_circle' }

/** Decide from the log alone: the same answer before and after a restart. */
export function nextStep(log: readonly SessionEvent[], promptId: string, maxTurns: number): Step {
  const turns = turnsOf(log, promptId)
  const last = turns.at(-1)
  if (last === undefined) return { do: 'ask', turn: 1 }

  const open = last.calls.filter(({ outcome }) => outcome === undefined)
  if (open.length > 0)
    return { do: 'run', turn: last.number, calls: open.map(({ call }) => modelCallOf(call)) }
  if (last.calls.length > 0 && !last.ended) {
    return { do: 'close', turn: last.number, callIds: last.calls.map(({ call }) => call.toolCallId) }
  }
  if (last.calls.length === 0 && last.text.trim() !== '') return { do: 'end', answered: true }
  if (isStuck(turnsSinceLastUserMessage(log, promptId))) return { do: 'stop_in_circle' }

  const before = turns.at(-2)
  const nudged = isEmpty(last) && before !== undefined && isEmpty(before)
  if (nudged) return { do: 'end', answered: false }
  if (last.number >= maxTurns)
    return isEmpty(last) ? { do: 'end', answered: false } : { do: 'stop_at_max_turns' }
  return { do: 'ask', turn: last.number + 1 }
}

/** The prompt waits for a person's answer. */
export function pendingApproval(log: readonly SessionEvent[], promptId: string): boolean {
  const pending = new Set<string>()
  for (const event of log) {
    if (metaOf(event).promptId !== promptId) continue
    const happened = sandlotEventOf(event)
    if (happened?.type === 'approval_asked') pending.add(happened.toolCallId)
    if (happened?.type === 'approval_answered') pending.delete(happened.toolCallId)
    if (isOutcome(event)) pending.delete(event.toolCallId)
  }
  return pending.size > 0
}

/** The end of a prompt, as its callers get it. */
export interface PromptEnd {
  promptId: string
  stopReason: Extract<ReturnType<typeof sandlotEventOf>, { type: 'prompt_ended' }>['stopReason']
  reason: EndReason
  text?: string
  /** Number of the `prompt_ended` event. */
  seq: number
}

/** The end of this prompt, if the log has it. */
export function promptEndOf(log: readonly SessionEvent[], promptId: string): PromptEnd | undefined {
  for (const event of log.toReversed()) {
    const happened = sandlotEventOf(event)
    if (happened?.type !== 'prompt_ended' || metaOf(event).promptId !== promptId) continue
    const { stopReason, reason, text } = happened
    return { promptId, stopReason, reason, seq: seqOf(event) ?? 0, text }
  }
  return undefined
}

/** The last prompt that was begun, if it has no end. `stopped`: a person has stopped it. */
export function unfinishedPrompt(
  log: readonly SessionEvent[],
): ({ promptId: string; unattended: boolean; stopped: boolean } & Terms) | undefined {
  let stopped = false
  for (const event of log.toReversed()) {
    const happened = sandlotEventOf(event)
    if (happened?.type === 'prompt_ended') return undefined
    if (happened?.type === 'stop_asked') stopped = true
    if (happened?.type !== 'prompt_started') continue
    const { modeCeiling, chargedTo, unattended = false } = happened
    return { promptId: metaOf(event).promptId ?? '', unattended, stopped, modeCeiling, chargedTo }
  }
  return undefined
}

/** Terms of a prompt that is not the owner's: see `prompt_started`. */
interface Terms {
  modeCeiling?: Mode | undefined
  chargedTo?: string | undefined
}

export interface QueuedMessage extends Terms {
  /** The author; absent: the owner. */
  author?: Author | undefined
  messageId: string
  text: string
  as: 'steer' | 'queue'
  images?: ModelImage[] | undefined
  /** No client can answer an approval, should it become a prompt of its own. */
  unattended?: boolean | undefined
  /** The consequence of a failed call for it then. */
  onError?: OnError | undefined
}

/** Messages that wait, oldest first. */
export function queuedMessages(log: readonly SessionEvent[]): QueuedMessage[] {
  const queued = new Map<string, QueuedMessage>()
  for (const event of log) {
    const happened = sandlotEventOf(event)
    if (happened?.type === 'message_queued') {
      const { type: _, ...message } = happened
      queued.set(message.messageId, { ...message, author: metaOf(event).author })
    } else if (happened?.type === 'message_unqueued') {
      queued.delete(happened.messageId)
    }
  }
  return [...queued.values()]
}

/**
 * The first message that waits and was sent behind the last Stop of this prompt. Undefined without
 * a Stop, and when all that wait were there before it.
 */
export function sentBehindStop(log: readonly SessionEvent[], promptId: string): QueuedMessage | undefined {
  const stop = log.findLastIndex(
    (event) => sandlotEventOf(event)?.type === 'stop_asked' && metaOf(event).promptId === promptId,
  )
  if (stop === -1) return undefined
  const before = new Set(queuedMessages(log.slice(0, stop)).map(({ messageId }) => messageId))
  return queuedMessages(log).find(({ messageId }) => !before.has(messageId))
}

/** The reason that a queued message waits no more. */
export interface Unqueued {
  /** `sent`: a prompt took it. `withdrawn`: its person took it back; no prompt ever has it. */
  why: Extract<SandlotEvent, { type: 'message_unqueued' }>['why']
  /** The prompt that took it, or, withdrawn, the one that it would have become. */
  promptId: string
  /** Number of the event that says so. */
  seq: number
}

/** Undefined while the message waits, and for one that never did. */
export function unqueued(log: readonly SessionEvent[], messageId: string): Unqueued | undefined {
  for (const event of log) {
    const happened = sandlotEventOf(event)
    if (happened?.type !== 'message_unqueued' || happened.messageId !== messageId) continue
    return { why: happened.why, promptId: metaOf(event).promptId ?? '', seq: seqOf(event) ?? 0 }
  }
  return undefined
}

/** State of calls in the log when a batch begins. Later actions of this process do not count. */
export interface CallsBefore {
  /** Calls that the log has already announced; they are not announced again. */
  announced: (callId: string) => boolean
  /**
   * Calls that the log says had begun when the batch did: an earlier process died while they ran.
   */
  begunBefore: (callId: string) => boolean
  /** When one of them began, in epoch milliseconds. */
  begunAt: (callId: string) => number | undefined
  /** The attempt of this call that the log has from before a restart. */
  previousAttempt: (callId: string) => { n: number; boot: string } | undefined
}

export function callsBefore(log: readonly SessionEvent[]): CallsBefore {
  const announced = new Set<string>()
  const begun = new Map<string, number>()
  const attempts = new Map<string, { n: number; boot: string }>()
  for (const event of log) {
    if (event.sessionUpdate === 'tool_call') announced.add(event.toolCallId)
    if (event.sessionUpdate !== 'tool_call_update' || isLive(event) || isOutcome(event)) continue
    const { attempt } = metaOf(event)
    if (event.status === 'in_progress' && !begun.has(event.toolCallId))
      begun.set(event.toolCallId, metaOf(event).at)
    if (attempt !== undefined) attempts.set(event.toolCallId, attempt)
  }
  return {
    announced: (callId) => announced.has(callId),
    begunBefore: (callId) => begun.has(callId),
    begunAt: (callId) => begun.get(callId),
    previousAttempt: (callId) => attempts.get(callId),
  }
}
