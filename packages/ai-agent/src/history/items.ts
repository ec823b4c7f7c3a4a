/**
 * A session's log as a list of items: what the user said, what the model answered and called, how
 * prompts ended. Pure; live events are ignored. Every fold of the agent begins here.
 */
import type { EndReason } from '@sandlot/shared/reasons'
import {
  type EventOf,
  type SessionEvent,
  isLive,
  isOutcome,
  metaOf,
  sandlotEventOf,
  seqOf,
} from '@sandlot/shared/events'
import { growingFold } from './growing-fold.ts'
import type { ModelCall, ModelImage } from '../model/model.ts'

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
  /** Name of the model that answered, as far as the log says. */
  model?: string
}

interface Place {
  /** Number of its first event. */
  seq: number
}

export type Item = Place &
  (
    | { type: 'user'; promptId: string | undefined; text: string; images: ModelImage[] }
    | { type: 'turn'; turn: Turn }
    | { type: 'end'; promptId: string; reason: EndReason; text: string | undefined }
  )

/**
 * The items of a session in order. A turn stands where its first event stands, whatever came
 * between its calls. Of a log that has only grown since it was last read, only what is new is read:
 * a prompt asks many times a turn, and in a long session each whole reading takes milliseconds. So
 * items and turns are the reader's own no longer than until it waits for something: a later event
 * may add to them.
 */
export function readItems(log: readonly SessionEvent[]): readonly Item[] {
  return readFold(log).items
}

interface Fold {
  items: Item[]
  turns: Map<string, Turn>
  calls: Map<string, CallRecord>
  /** Prompts that are commands: the model hears nothing of them. */
  commands: Set<string | undefined>
  model: string | undefined
}

const readFold = growingFold<Fold>(
  () => ({ items: [], turns: new Map(), calls: new Map(), commands: new Set(), model: undefined }),
  (fold, event, place) => {
    if (!isLive(event)) readOne(fold, event, place)
  },
)

function readOne(fold: Fold, event: SessionEvent, index: number): void {
  const { items, turns, calls } = fold
  const { promptId, turn: number, forProvider } = metaOf(event)
  const seq = seqOf(event) ?? index + 1

  const turnOf = (): Turn | undefined => {
    if (promptId === undefined || number === undefined) return undefined
    const key = `${promptId} ${number}`
    let turn = turns.get(key)
    if (turn === undefined) {
      turn = { promptId, number, text: '', calls: [], ended: false }
      if (fold.model !== undefined) turn.model = fold.model
      turns.set(key, turn)
      items.push({ type: 'turn', seq, turn })
    }
    if (forProvider?.answer !== undefined) turn.answerForProvider = forProvider.answer
    return turn
  }

  if (event.sessionUpdate === 'user_message_chunk') {
    if (!fold.commands.has(promptId)) addUser(items, event, seq)
  } else if (event.sessionUpdate === 'agent_message_chunk') {
    const turn = turnOf()
    if (turn !== undefined && event.content.type === 'text') turn.text = event.content.text
  } else if (event.sessionUpdate === 'agent_thought_chunk') {
    turnOf()
  } else if (event.sessionUpdate === 'tool_call') {
    const record: CallRecord = { call: event }
    calls.set(event.toolCallId, record)
    turnOf()?.calls.push(record)
  } else if (isOutcome(event)) {
    const record = calls.get(event.toolCallId)
    if (record !== undefined) record.outcome ??= event
  } else {
    const happened = sandlotEventOf(event)
    if (happened?.type === 'prompt_started' || happened?.type === 'model_changed') {
      fold.model = happened.model ?? fold.model
      if (happened.type === 'prompt_started' && happened.command !== undefined) fold.commands.add(promptId)
    } else if (happened?.type === 'turn_ended') {
      const turn = turnOf()
      if (turn !== undefined) turn.ended = true
    } else if (happened?.type === 'background_ended') {
      if (happened.text !== undefined)
        items.push({ type: 'user', seq, promptId, text: happened.text, images: [] })
    } else if (happened?.type === 'prompt_ended' && !fold.commands.has(promptId)) {
      const { reason, text } = happened
      items.push({ type: 'end', seq, promptId: promptId ?? '', reason, text })
    }
  }
}

/** A message, or one more part of the message before: its images come behind its text. */
function addUser(items: Item[], event: EventOf<'user_message_chunk'>, seq: number): void {
  const { promptId } = metaOf(event)
  const { content } = event
  const last = items.at(-1)
  if (content.type === 'image') {
    const image = { mimeType: content.mimeType, data: content.data }
    if (last?.type === 'user') last.images.push(image)
    else items.push({ type: 'user', seq, promptId, text: '', images: [image] })
  } else {
    const text = content.type === 'text' ? content.text : `[${content.name}](${content.uri})`
    items.push({ type: 'user', seq, promptId, text, images: [] })
  }
}

/** The model said and called nothing. */
export function isEmpty(turn: Turn): boolean {
  return turn.calls.length === 0 && turn.text.trim() === ''
}

/** The call as the model made it, from its announcement. */
export function modelCallOf(call: EventOf<'tool_call'>): ModelCall {
  const { forProvider } = metaOf(call)
  return {
    id: call.toolCallId,
    name: call.name,
    args: call.rawInput,
    invalid: forProvider?.invalid,
    replay: forProvider?.call,
  }
}

/**
 * The turns of a prompt since something was said to the model last: what it did before that, it was
 * told to do anew.
 */
export function turnsSinceTold(log: readonly SessionEvent[], promptId: string): Turn[] {
  const items = readItems(log)
  const told = items.findLastIndex((item) => item.type === 'user' && item.promptId === promptId)
  return items
    .slice(told + 1)
    .flatMap((item) => (item.type === 'turn' && item.turn.promptId === promptId ? [item.turn] : []))
}

/** A prompt's turns in order. */
export function turnsOf(log: readonly SessionEvent[], promptId: string): Turn[] {
  return readItems(log).flatMap((item) =>
    item.type === 'turn' && item.turn.promptId === promptId ? [item.turn] : [],
  )
}
