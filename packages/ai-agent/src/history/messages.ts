/** What the model is told: the messages of the next request, computed from the log alone. */
import { type SessionEvent, sandlotEventOf, seqOf } from '@sandlot/shared/events'
import { compactionOf, openingText, PRUNED, type Compaction } from './compaction.ts'
import { type CallRecord, type Item, type Turn, isEmpty, modelCallOf, readItems } from './items.ts'
import { bareCall, foreignId, plainHistory } from './plain.ts'
import { atMostTokens } from '../model/tokens.ts'
import type { AssistantMessage, ModelImage, ModelMessage, ToolMessage } from '../model/model.ts'
import { truncateToolOutput } from '../tools/output/truncate-output.ts'

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
  /** Tokens of its window. No single result takes more than a quarter of it. */
  contextWindow?: number
}

/**
 * The messages of the next request: the system prompt, then the conversation. Of a turn the
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
  const messages: ModelMessage[] = [{ role: 'system', content: system }]
  const compaction = compactionOf(log)
  for (const item of keptItems(readItems(log), compaction)) addItem(messages, item, compaction, reader)
  const mended = log.some((event) => sandlotEventOf(event)?.type === 'history_mended')
  return mended ? plainHistory(messages) : messages
}

/**
 * What the summary does not stand for, behind the summary. That is a message of the user: it joins
 * the one that follows, or repeats the last one, so that the conversation begins with what was
 * asked.
 */
function keptItems(items: readonly Item[], compaction: Compaction): Item[] {
  const { upTo } = compaction
  if (upTo === 0) return [...items]
  const kept = items.filter((item) => item.seq > upTo || (item.type === 'turn' && isOpen(item.turn)))
  const [first, ...rest] = kept
  if (first?.type === 'user')
    return [{ ...first, text: openingText(compaction, undefined, first.text) }, ...rest]
  const last = items.findLast((item) => item.type === 'user' && item.seq <= upTo)
  const asked = last?.type === 'user' ? last : undefined
  const text = openingText(compaction, asked?.text, undefined)
  return [{ type: 'user', seq: upTo, promptId: asked?.promptId, text, images: asked?.images ?? [] }, ...kept]
}

function isOpen(turn: Turn): boolean {
  return turn.calls.some(({ outcome }) => outcome === undefined)
}

function addItem(messages: ModelMessage[], item: Item, compaction: Compaction, reader: Reader): void {
  if (item.type === 'user') {
    const { text, images } = item
    messages.push({ role: 'user', content: text, ...(images.length === 0 ? {} : { images }) })
  } else if (item.type === 'end') {
    // What the user read in place of an answer, so that roles keep alternating and the model knows
    // it too.
    if (item.text !== undefined && !isAnswer(messages.at(-1))) {
      messages.push({ role: 'assistant', content: item.text, calls: [] })
    }
  } else if (!isEmpty(item.turn)) {
    const { calls } = item.turn
    const most = mostTokens(reader, calls.length)
    const results = calls.map((record) => toolMessage(record, compaction.prunedUpTo, most))
    messages.push(...forReader(item.turn, assistantMessage(item.turn), results, reader))
  } else if (item.turn.ended && messages.at(-1)?.content !== NUDGE) {
    // Once, also where the answer to it was empty too.
    messages.push({ role: 'user', content: NUDGE })
  }
}

function isAnswer(message: ModelMessage | undefined): boolean {
  return message?.role === 'assistant' && message.calls.length === 0
}

function assistantMessage(turn: Turn): AssistantMessage {
  const calls = turn.calls.map(({ call }) => modelCallOf(call))
  const message: AssistantMessage = { role: 'assistant', content: turn.text, calls }
  if (turn.answerForProvider !== undefined) message.replay = turn.answerForProvider
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
  { model }: Reader,
): ModelMessage[] {
  if (model === undefined || turn.model === undefined || turn.model === model) return [answer, ...results]
  const { role, content, calls } = answer
  return [
    { role, content, calls: calls.map((call) => bareCall(call, foreignId(call.id))) },
    ...results.map((result) => ({ ...result, callId: foreignId(result.callId) })),
  ]
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
