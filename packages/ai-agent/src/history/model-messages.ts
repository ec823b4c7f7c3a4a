/** The messages of the next request to the model, computed from the log alone. */
import {
  isLive,
  isOutcome,
  metaOf,
  sandlotEventOf,
  seqOf,
  type EventOf,
  type SessionEvent,
} from '@sandlot/shared/chat/events'
import type { EndReason } from '@sandlot/shared/chat/reasons'
import { PRUNED, compactionOf, openingText, type Compaction } from './compaction.ts'
import { bareCall, foreignId, plainHistory } from './plain.ts'
import { atMostTokens } from '../model/tokens.ts'
import type {
  AssistantMessage,
  ModelCall,
  ModelImage,
  ModelMessage,
  ReplayItem,
  ToolMessage,
} from '../model/model.ts'
import type { SandlotMeta } from '@sandlot/shared/chat/event-meta'
import type { SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import type { Author } from '@sandlot/shared/chat/shares'
import { asWritten } from '../tools/argument-aliases.ts'
import { truncateToolOutput } from '../tools/output/truncate-output.ts'
import { growingFold } from './growing-fold.ts'
import { type InstructionsNote, InstructionsFold, withInstructions } from './instructions.ts'

/**
 * Sent once when the model's answer was empty. Part of the history, so it must never change for
 * stored sessions.
 */
const NUDGE = 'Your last answer was empty. Please answer the user now, in words, from what you know so far.'

/**
 * The model's text of a call whose outcome never came. Does not happen; keeps the history valid if
 * it does.
 */
export const NO_RESULT = 'This call has no result: it was interrupted.'

/** The model that reads the messages. */
export interface Reader {
  /**
   * Its name. What other models want back with their messages (reasoning, signatures) is left out.
   */
  model?: string
  /** See `Model`. */
  wire?: string | undefined
  origin?: string | undefined
  /** Items of answers that are stored outputs, by their ids. */
  stored?: ReadonlyMap<string, readonly ReplayItem[]>
  /** It refused the reasoning in its answers, which is left out. */
  refused?: boolean
  /** Tokens of its window. No single result takes more than a quarter of it. */
  contextWindow?: number
}

/**
 * The messages of the next request: `system` with the standing instructions, then the conversation,
 * with a note in front of a message since which they have changed. Of a turn the
 * assistant message with *all* its calls, then one tool message per call in the model's order,
 * nothing between. A message that joined later stands behind the results. Append-only until the
 * next `compacted`, `model_changed` or `history_mended`: a longer log only ever adds messages at
 * the end.
 */
export function modelMessages(
  log: readonly SessionEvent[],
  system: string,
  reader: Reader = {},
): ModelMessage[] {
  const { items, instructions } = readFold(log)
  const messages: ModelMessage[] = [{ role: 'system', content: systemText(log, system) }]
  const compaction = compactionOf(log)
  const { origin } = reader
  const to = origin !== undefined && isRefused(log, origin) ? { ...reader, refused: true } : reader
  for (const item of retainedItems(items, compaction))
    addItem(messages, item, { compaction, instructions }, to)
  return mends(log).some(({ origin }) => origin === undefined) ? plainHistory(messages) : messages
}

/** The system text of the next request: `system` with the standing instructions. */
export function systemText(log: readonly SessionEvent[], system: string): string {
  return withInstructions(system, readFold(log).instructions.inSystem)
}

function mends(log: readonly SessionEvent[]): { origin?: string | undefined }[] {
  return log.flatMap((event) => {
    const happened = sandlotEventOf(event)
    return happened?.type === 'history_mended' ? [happened] : []
  })
}

/** The log says that this provider refused the reasoning in its answers. */
export function isRefused(log: readonly SessionEvent[], origin: string): boolean {
  return mends(log).some((mend) => mend.origin === origin)
}

/**
 * The items that the summary does not replace, after it. The summary is a message of the user: it
 * joins the one that follows, or repeats the last one, so that the conversation begins with a
 * question.
 */
function retainedItems(items: readonly Item[], compaction: Compaction): Item[] {
  const { upTo } = compaction
  if (upTo === 0) return [...items]
  const retained = items.filter((item) => item.seq > upTo || (item.type === 'turn' && isOpen(item.turn)))
  const [first, ...rest] = retained
  if (first?.type === 'user')
    return [{ ...first, text: openingText(compaction, undefined, first.text) }, ...rest]
  const last = items.findLast((item) => item.type === 'user' && item.seq <= upTo)
  const asked = last?.type === 'user' ? last : undefined
  const text = openingText(compaction, asked?.text, undefined)
  return [
    { type: 'user', seq: upTo, promptId: asked?.promptId, text, images: asked?.images ?? [] },
    ...retained,
  ]
}

function isOpen(turn: Turn): boolean {
  return turn.calls.some(({ outcome }) => outcome === undefined)
}

function addItem(
  messages: ModelMessage[],
  item: Item,
  { compaction, instructions }: { compaction: Compaction; instructions: InstructionsFold },
  reader: Reader,
): void {
  if (item.type === 'user') {
    const { images } = item
    const content = instructions.textOf(item, compaction.at)
    messages.push({ role: 'user', content, ...(images.length === 0 ? {} : { images }) })
  } else if (item.type === 'end') {
    // The text that the user read in place of an answer, so that roles keep alternating and the
    // model knows it too.
    if (item.text !== undefined && !isAnswer(messages.at(-1))) {
      messages.push({ role: 'assistant', content: item.text, calls: [] })
    }
  } else if (!isEmpty(item.turn)) {
    const { calls } = item.turn
    const most = mostTokens(reader, calls.length)
    const results = calls.map((record) => toolMessage(record, compaction.prunedUpTo, most))
    messages.push(...forReader(item.turn, assistantMessage(item.turn, reader), results, reader))
  } else if (item.turn.ended && messages.at(-1)?.content !== NUDGE) {
    // Once, also where the answer to it was empty too.
    messages.push({ role: 'user', content: NUDGE })
  }
}

function isAnswer(message: ModelMessage | undefined): boolean {
  return message?.role === 'assistant' && message.calls.length === 0
}

function assistantMessage(turn: Turn, { stored, refused }: Reader): AssistantMessage {
  const calls = turn.calls.map(({ call }) => ({
    ...modelCallOf(call),
    args: asWritten(call.rawInput, metaOf(call).forProvider?.names),
  }))
  const message: AssistantMessage = { role: 'assistant', content: turn.text, calls }
  const { items, output = '' } = turn.replay ?? {}
  const replay = items ?? stored?.get(output)
  if (replay !== undefined && refused !== true) message.replay = replay
  return message
}

/**
 * Another model gets neither what only the one that answered understands, nor ids that only its
 * provider takes.
 */
function forReader(
  turn: Turn,
  answer: AssistantMessage,
  results: readonly ToolMessage[],
  reader: Reader,
): ModelMessage[] {
  if (isAuthor(reader, turn)) return [answer, ...results]
  const { role, content, calls } = answer
  return [
    { role, content, calls: calls.map((call) => bareCall(call, foreignId(call.id))) },
    ...results.map((result) => ({ ...result, callId: foreignId(result.callId) })),
  ]
}

/** True where the provider that is asked made this answer. */
function isAuthor({ model, wire, origin }: Reader, { replay, model: author }: Turn): boolean {
  // Logs of before hold members of Chat Completions alone.
  if (replay !== undefined && wire !== undefined && (replay.wire ?? 'chat') !== wire) return false
  if (replay?.origin !== undefined && origin !== undefined) return replay.origin === origin
  return model === undefined || author === undefined || author === model
}

/** The result of one call, as the model gets it. */
function toolMessage(
  { call, outcome }: CallRecord,
  prunedUpTo = 0,
  most = Number.POSITIVE_INFINITY,
): ToolMessage {
  const message = { role: 'tool', callId: call.toolCallId } as const
  if (outcome === undefined) return { ...message, content: NO_RESULT }
  const text = outcome.rawOutput?.forModel ?? NO_RESULT
  if ((seqOf(call) ?? 0) <= prunedUpTo && isWorthPruning({ call, outcome })) {
    return { ...message, content: PRUNED }
  }
  const content = atMostTokens(
    text,
    most,
    (long, maxChars) => truncateToolOutput(long, { maxChars, maxLines: Number.POSITIVE_INFINITY }).text,
  )
  const images = imagesOf(outcome.content)
  return { ...message, content, ...(images.length === 0 ? {} : { images }) }
}

/**
 * Tokens that a result may take: a quarter of the window, and those of one turn together a half.
 */
function mostTokens({ contextWindow }: Reader, calls: number): number {
  return contextWindow === undefined ? Number.POSITIVE_INFINITY : contextWindow / Math.max(4, 2 * calls)
}

/** Leaving it out makes room. */
export function isWorthPruning({ outcome }: CallRecord): boolean {
  const text = outcome?.rawOutput?.forModel ?? ''
  return text.length > 2 * PRUNED.length || imagesOf(outcome?.content).length > 0
}

function imagesOf(content: NonNullable<CallRecord['outcome']>['content']): ModelImage[] {
  return (content ?? []).flatMap((part) =>
    part.type === 'content' && part.content.type === 'image'
      ? [{ mimeType: part.content.mimeType, data: part.content.data }]
      : [],
  )
}

/*
 * A session's log as a list of items: what the user said, what the model answered and called, how
 * prompts ended. Pure; live events are ignored. Every fold of the agent begins here.
 */

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
  /** Without a wire in logs of before. */
  replay?: Partial<NonNullable<NonNullable<SandlotMeta['forProvider']>['replay']>>
  /** Name of the model that answered, as far as the log says. */
  model?: string
}

interface Place {
  /** Number of its first event. */
  seq: number
}

export type Item = Place &
  (
    | {
        type: 'user'
        promptId: string | undefined
        text: string
        images: ModelImage[]
        note?: InstructionsNote | undefined
      }
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

/** Characters of a name that the model reads. */
const MOST_CHARS = 60

/**
 * Authors, for the model: from the first message of a second author on, each message has the name
 * of its author in front. Earlier ones stay as they were sent, so that the history only grows.
 */
class Speakers {
  /** Author of the first message; null: none yet. Undefined: the owner, whose name is not known. */
  #first: Author | undefined | null = null
  /** The author of messages without one, once a later message names it. */
  #owner: string | undefined
  #several = false
  /** Names that the model has read or may read. */
  readonly #names = new Set<string>()

  /** The text of a message as the model gets it. */
  named(text: string, author: Author | undefined): string {
    if (this.#first === null) this.#first = author
    this.#several ||= this.#idOf(this.#first) !== this.#idOf(author)
    for (const one of [this.#first, author]) this.#names.add(nameOf(one ?? undefined))
    return this.#several ? `[${nameOf(author)}] ${this.#withoutForged(text)}` : text
  }

  /**
   * A message that no share bounds is its owner's: so are those of a log of before, which have no
   * author. A later owner is another speaker.
   */
  note(happened: SandlotEvent | undefined, author: Author | undefined): void {
    if (happened?.type !== 'prompt_started' && happened?.type !== 'message_queued') return
    if (happened.modeCeiling === undefined) this.#owner ??= author?.id
  }

  #idOf(author: Author | undefined): string | undefined {
    return author?.id === this.#owner ? undefined : author?.id
  }

  /** A line that begins as a message of another would is one of this message. */
  #withoutForged(text: string): string {
    return text.replaceAll(/^(\s*)\[([^\]\n]{1,200})\]/gm, (all, space: string, name: string) =>
      this.#names.has(clean(name)) ? `${space}\\[${name}]` : all,
    )
  }
}

function nameOf(author: Author | undefined): string {
  if (author === undefined) return 'owner'
  return clean(author.name) || author.id
}

/** One line without brackets, so that a name is nothing else. */
function clean(name: string): string {
  return name
    .normalize('NFKC')
    .replaceAll(/[\p{C}[\]\s]+/gu, ' ')
    .trim()
    .slice(0, MOST_CHARS)
    .toWellFormed()
}

interface Fold {
  items: Item[]
  turns: Map<string, Turn>
  calls: Map<string, CallRecord>
  /** Prompts that are commands: the model does not get them. */
  commands: Set<string | undefined>
  model: string | undefined
  speakers: Speakers
  instructions: InstructionsFold
}

const readFold = growingFold<Fold>(
  () => ({
    items: [],
    turns: new Map(),
    calls: new Map(),
    commands: new Set(),
    model: undefined,
    speakers: new Speakers(),
    instructions: new InstructionsFold(),
  }),
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
    if (forProvider?.replay !== undefined) turn.replay = forProvider.replay
    else if (forProvider?.answer !== undefined) turn.replay = { items: [{ raw: forProvider.answer }] }
    return turn
  }

  if (event.sessionUpdate === 'user_message_chunk') {
    if (!fold.commands.has(promptId)) addUser(fold, event, seq)
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
    fold.speakers.note(happened, metaOf(event).author)
    const last = items.at(-1)
    if (happened !== undefined)
      fold.instructions.read(happened, promptId, seq, last?.type === 'user' ? last : undefined)
    if (happened?.type === 'prompt_started' || happened?.type === 'model_changed') {
      fold.model = happened.model ?? fold.model
      if (happened.type === 'prompt_started' && happened.command !== undefined) fold.commands.add(promptId)
    } else if (happened?.type === 'turn_ended') {
      const turn = turnOf()
      if (turn !== undefined) turn.ended = true
    } else if (happened?.type === 'background_ended') {
      if (happened.text !== undefined) items.push(userItem(fold, seq, promptId, happened.text))
    } else if (happened?.type === 'prompt_ended' && !fold.commands.has(promptId)) {
      const { reason, text } = happened
      items.push({ type: 'end', seq, promptId: promptId ?? '', reason, text })
    }
  }
}

/** A message, or one more part of the message before: its images come behind its text. */
function addUser(fold: Fold, event: EventOf<'user_message_chunk'>, seq: number): void {
  const { promptId } = metaOf(event)
  const { content } = event
  const last = fold.items.at(-1)
  if (content.type === 'image') {
    const image = { mimeType: content.mimeType, data: content.data }
    if (last?.type === 'user') last.images.push(image)
    else fold.items.push(userItem(fold, seq, promptId, '', [image]))
  } else {
    const said = content.type === 'text' ? content.text : `[${content.name}](${content.uri})`
    const text = fold.speakers.named(said, metaOf(event).author)
    fold.items.push(userItem(fold, seq, promptId, text))
  }
}

function userItem(
  { instructions }: Fold,
  seq: number,
  promptId: string | undefined,
  text: string,
  images: ModelImage[] = [],
): Item {
  return { type: 'user', seq, promptId, text, images, note: instructions.take() }
}

/** The model said and called nothing. */
export function isEmpty(turn: Turn): boolean {
  return turn.calls.length === 0 && turn.text.trim() === ''
}

/** The call from its announcement, with the true names of its arguments. */
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
 * The turns of a prompt since the last message to the model: repetition across a message is
 * intended.
 */
export function turnsSinceLastUserMessage(log: readonly SessionEvent[], promptId: string): Turn[] {
  const items = readItems(log)
  const lastMessage = items.findLastIndex((item) => item.type === 'user' && item.promptId === promptId)
  return items
    .slice(lastMessage + 1)
    .flatMap((item) => (item.type === 'turn' && item.turn.promptId === promptId ? [item.turn] : []))
}

/** A prompt's turns in order. */
export function turnsOf(log: readonly SessionEvent[], promptId: string): Turn[] {
  return readItems(log).flatMap((item) =>
    item.type === 'turn' && item.turn.promptId === promptId ? [item.turn] : [],
  )
}
