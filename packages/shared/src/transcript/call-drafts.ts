/**
 * Calls that the model is writing: shown while they grow, gone when their message is whole or
 * withdrawn.
 */
import { type SessionEvent, isLive, metaOf, sandlotEventOf } from '../chat/events.ts'
import type { SandlotEvent } from '../chat/sandlot-event.ts'

export type DraftedCall = Extract<SandlotEvent, { type: 'call_drafted' }>

const MOST_TEXT = 1_200
const HEAD_TEXT = 200

/**
 * Of long arguments their beginning, which says what the call is about, and their end, where they
 * grow.
 */
export function draftText(args: string): string {
  if (args.length <= MOST_TEXT) return args
  return `${args.slice(0, HEAD_TEXT)} … ${args.slice(HEAD_TEXT - MOST_TEXT)}`.toWellFormed()
}

/** The drafts with this one in its place; the same list when a later state of it is known. */
export function withDraft(drafts: readonly DraftedCall[], draft: DraftedCall): readonly DraftedCall[] {
  const known = drafts.find((one) => one.messageId === draft.messageId && one.place === draft.place)
  if (known !== undefined && known.chars >= draft.chars) return drafts
  return [...drafts.filter((one) => one !== known), draft].toSorted((one, other) => one.place - other.place)
}

/**
 * True for a settled event behind which no draft is one any more: the message they belong to is
 * whole, or was taken back.
 */
export function endsDrafts(event: SessionEvent): boolean {
  if (isLive(event)) return false
  if (event.sessionUpdate === 'tool_call' || event.sessionUpdate === 'agent_message_chunk') return true
  const happened = sandlotEventOf(event)?.type
  return happened === 'message_withdrawn' || happened === 'prompt_started' || happened === 'prompt_ended'
}

/** The draft that a live event shows, if it shows one. */
export function draftOf(event: SessionEvent): DraftedCall | undefined {
  const happened = sandlotEventOf(event)
  return happened?.type === 'call_drafted' && metaOf(event).live === true ? happened : undefined
}
