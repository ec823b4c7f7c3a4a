/**
 * The agent's folds of the log: what the model is told, what a turn's calls gave, where a prompt stands. Pure; the log
 * is the truth, and nothing here keeps state. Live events are ignored.
 */
import {
  type EndReason,
  type EventOf,
  type FailureReason,
  type SessionEvent,
  isLive,
  isOutcome,
  metaOf,
  sandlotEventOf,
  seqOf,
  textOf,
} from '@sandlot/shared/events'
import { isStuck } from './no-progress.ts'
import type { AssistantMessage, ModelCall, ModelMessage, ToolMessage } from './model/model.ts'

/** One call of a turn: how it was announced and, once it is there, how it ended. */
export interface CallRecord {
  call: EventOf<'tool_call'>
  outcome?: EventOf<'tool_call_update'>
}

/** One model answer and the calls it made. */
export interface Turn {
  promptId: string
  /** From 1 within the prompt. */
  number: number
  text: string
  /** In the model's order. */
  calls: CallRecord[]
  /** `turn_ended` is in the log. */
  ended: boolean
  answerForProvider?: Record<string, unknown>
}

type Item =
  | { type: 'user'; text: string }
  | { type: 'turn'; turn: Turn }
  | { type: 'end'; promptId: string; reason: EndReason; text: string | undefined }

/** Names one turn in a session. */
export interface TurnRef {
  promptId: string
  /** From 1 within the prompt. */
  turn: number
}

/** Sent once when the model's answer was empty. Part of the history, so it must never change for stored sessions. */
export const NUDGE =
  'Your last answer was empty. Please answer the user now, in words, from what you know so far.'

/** The model's text of a call whose outcome never came. Does not happen; keeps the history valid if it does. */
const NO_RESULT = 'This call has no result: it was interrupted.'

/** The items of a session in order. A turn stands where its first event stands, whatever came between its calls. */
function readItems(log: readonly SessionEvent[]): Item[] {
  const items: Item[] = []
  const turns = new Map<string, Turn>()
  const calls = new Map<string, CallRecord>()

  const turnOf = (event: SessionEvent): Turn | undefined => {
    const { promptId, turn: number, forProvider } = metaOf(event)
    if (promptId === undefined || number === undefined) return undefined
    const key = `${promptId} ${number}`
    let turn = turns.get(key)
    if (turn === undefined) {
      turn = { promptId, number, text: '', calls: [], ended: false }
      turns.set(key, turn)
      items.push({ type: 'turn', turn })
    }
    if (forProvider?.answer !== undefined) turn.answerForProvider = forProvider.answer
    return turn
  }

  for (const event of log) {
    if (isLive(event)) continue
    if (event.sessionUpdate === 'user_message_chunk') {
      items.push({ type: 'user', text: textOf(event) })
    } else if (event.sessionUpdate === 'agent_message_chunk') {
      const turn = turnOf(event)
      if (turn !== undefined) turn.text = textOf(event)
    } else if (event.sessionUpdate === 'agent_thought_chunk') {
      turnOf(event)
    } else if (event.sessionUpdate === 'tool_call') {
      const record: CallRecord = { call: event }
      calls.set(event.toolCallId, record)
      turnOf(event)?.calls.push(record)
    } else if (isOutcome(event)) {
      const record = calls.get(event.toolCallId)
      if (record !== undefined) record.outcome ??= event
    } else {
      const happened = sandlotEventOf(event)
      if (happened?.type === 'turn_ended') {
        const turn = turnOf(event)
        if (turn !== undefined) turn.ended = true
      } else if (happened?.type === 'prompt_ended') {
        const promptId = metaOf(event).promptId ?? ''
        items.push({ type: 'end', promptId, reason: happened.reason, text: happened.text })
      }
    }
  }
  return items
}

function isEmpty(turn: Turn): boolean {
  return turn.calls.length === 0 && turn.text.trim() === ''
}

// ── What the model is told ──────────────────────────────────────────────────────────────────────────────

/**
 * The messages of the next request: the system prompt, then the whole conversation. Of a turn the assistant message with
 * *all* its calls, then one tool message per call in the model's order, nothing between. A message that joined later
 * stands behind the results. Append-only: a longer log only ever adds messages at the end.
 */
export function modelMessages(log: readonly SessionEvent[], system: string): ModelMessage[] {
  const messages: ModelMessage[] = [{ role: 'system', content: system }]
  for (const item of readItems(log)) {
    if (item.type === 'user') {
      messages.push({ role: 'user', content: item.text })
    } else if (item.type === 'end') {
      // What the user read in place of an answer, so that roles keep alternating and the model knows it too.
      if (item.text !== undefined && !isAnswer(messages.at(-1))) {
        messages.push({ role: 'assistant', content: item.text, calls: [] })
      }
    } else if (!isEmpty(item.turn)) {
      messages.push(assistantMessage(item.turn), ...item.turn.calls.map(toolMessage))
    } else if (item.turn.ended) {
      messages.push({ role: 'user', content: NUDGE })
    }
  }
  return messages
}

function isAnswer(message: ModelMessage | undefined): boolean {
  return message?.role === 'assistant' && message.calls.length === 0
}

function assistantMessage(turn: Turn): AssistantMessage {
  return {
    role: 'assistant',
    content: turn.text,
    calls: turn.calls.map(({ call }) => modelCallOf(call)),
    ...(turn.answerForProvider === undefined ? {} : { replay: turn.answerForProvider }),
  }
}

/** The call as the model made it, from its announcement. */
export function modelCallOf(call: EventOf<'tool_call'>): ModelCall {
  const { forProvider } = metaOf(call)
  return {
    id: call.toolCallId,
    name: call.name,
    args: call.rawInput,
    ...(forProvider?.invalid === undefined ? {} : { invalid: forProvider.invalid }),
    ...(forProvider?.call === undefined ? {} : { replay: forProvider.call }),
  }
}

function toolMessage({ call, outcome }: CallRecord): ToolMessage {
  return { role: 'tool', callId: call.toolCallId, content: outcome?.rawOutput?.forModel ?? NO_RESULT }
}

// ── What a turn gave ────────────────────────────────────────────────────────────────────────────────────

/** A prompt's turns in order. */
export function turnsOf(log: readonly SessionEvent[], promptId: string): Turn[] {
  return readItems(log).flatMap((item) =>
    item.type === 'turn' && item.turn.promptId === promptId ? [item.turn] : [],
  )
}

function findTurn(log: readonly SessionEvent[], ref: TurnRef): Turn | undefined {
  return turnsOf(log, ref.promptId).find((turn) => turn.number === ref.turn)
}

/** The tool messages of one turn, in call order. */
export function toolMessages(log: readonly SessionEvent[], ref: TurnRef): ToolMessage[] {
  return findTurn(log, ref)?.calls.map(toolMessage) ?? []
}

/** How one call of a turn went. */
export interface ExecutionResult {
  callId: string
  name: string
  status: 'running' | 'completed' | 'failed'
  reason?: FailureReason
  /** What the model was told. Empty while it runs. */
  text: string
  truncated: boolean
  outputUrl?: string
  waitMs?: number
  runMs?: number
}

/** The execution records of one turn, in call order. */
export function executionResults(log: readonly SessionEvent[], ref: TurnRef): ExecutionResult[] {
  return findTurn(log, ref)?.calls.map(executionResult) ?? []
}

function executionResult({ call, outcome }: CallRecord): ExecutionResult {
  const base = { callId: call.toolCallId, name: call.name }
  if (outcome === undefined) return { ...base, status: 'running', text: '', truncated: false }
  const { reason, outputInfo, timing } = metaOf(outcome)
  return {
    ...base,
    status: outcome.status === 'completed' ? 'completed' : 'failed',
    ...(reason === undefined ? {} : { reason }),
    text: outcome.rawOutput?.forModel ?? '',
    truncated: outputInfo?.truncated ?? false,
    ...(outputInfo === undefined ? {} : { outputUrl: outputInfo.url }),
    ...(timing === undefined ? {} : { waitMs: timing.waitMs, runMs: timing.runMs }),
  }
}

// ── Where a prompt stands ───────────────────────────────────────────────────────────────────────────────

/** What the loop has to do next. */
export type Step =
  /** Ask the model for this turn. */
  | { do: 'ask'; turn: number }
  /** Run the calls of this turn that have no outcome. */
  | { do: 'run'; turn: number; calls: ModelCall[] }
  /** Every call of this turn has its outcome; say so. */
  | { do: 'close'; turn: number; callIds: string[] }
  /** The model has answered, or will not. */
  | { do: 'end'; answered: boolean }
  | { do: 'stop_at_max_turns' }
  /** It went round in a circle, was told, and went on. */
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
  if (isStuck(turns)) return { do: 'stop_in_circle' }

  const before = turns.at(-2)
  const nudged = isEmpty(last) && before !== undefined && isEmpty(before)
  if (nudged) return { do: 'end', answered: false }
  if (last.number >= maxTurns)
    return isEmpty(last) ? { do: 'end', answered: false } : { do: 'stop_at_max_turns' }
  return { do: 'ask', turn: last.number + 1 }
}

/** How a prompt ended, as its callers hear it. */
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
    return { promptId, stopReason, reason, seq: seqOf(event) ?? 0, ...(text === undefined ? {} : { text }) }
  }
  return undefined
}

/** The last prompt that was begun, if it has no end. `stopped`: a person has stopped it. */
export function unfinishedPrompt(
  log: readonly SessionEvent[],
): { promptId: string; unattended: boolean; stopped: boolean } | undefined {
  let stopped = false
  for (const event of log.toReversed()) {
    const happened = sandlotEventOf(event)
    if (happened?.type === 'prompt_ended') return undefined
    if (happened?.type === 'stop_asked') stopped = true
    if (happened?.type !== 'prompt_started') continue
    return { promptId: metaOf(event).promptId ?? '', unattended: happened.unattended === true, stopped }
  }
  return undefined
}

export interface QueuedMessage {
  messageId: string
  text: string
  as: 'steer' | 'queue'
  /** Nobody can answer an approval, should it become a prompt of its own. */
  unattended?: boolean | undefined
}

/** Messages that wait, oldest first. */
export function queuedMessages(log: readonly SessionEvent[]): QueuedMessage[] {
  const queued = new Map<string, QueuedMessage>()
  for (const event of log) {
    const happened = sandlotEventOf(event)
    if (happened?.type === 'message_queued') {
      const { type: _, ...message } = happened
      queued.set(message.messageId, message)
    } else if (happened?.type === 'message_unqueued') {
      queued.delete(happened.messageId)
    }
  }
  return [...queued.values()]
}

/** The prompt that took this queued message, if one did. */
export function promptThatTook(log: readonly SessionEvent[], messageId: string): string | undefined {
  for (const event of log) {
    const happened = sandlotEventOf(event)
    if (
      happened?.type === 'message_unqueued' &&
      happened.messageId === messageId &&
      happened.why === 'sent'
    ) {
      return metaOf(event).promptId
    }
  }
  return undefined
}
