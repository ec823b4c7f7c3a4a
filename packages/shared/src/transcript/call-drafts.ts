/**
 * Calls that the model is writing: shown while they grow, removed when their message is complete or
 * withdrawn.
 */
import { type SessionEvent, isLive, metaOf, sandlotEventOf } from '../chat/events.ts'
import type { SandlotEvent } from '../chat/sandlot-event.ts'

export type DraftedCall = Extract<SandlotEvent, { type: 'call_drafted' }>

const MOST_TEXT = 1_200
const HEAD_TEXT = 200

/** The beginning of long arguments, which identifies the call, and their end, where they grow. */
export function draftText(args: string): string {
  if (args.length <= MOST_TEXT) return args
  return `${args.slice(0, HEAD_TEXT)} … ${args.slice(HEAD_TEXT - MOST_TEXT)}`.toWellFormed()
}

/** The drafts with this one updated; the same list if a later state of it is known. */
export function withDraft(drafts: readonly DraftedCall[], draft: DraftedCall): readonly DraftedCall[] {
  const known = drafts.find((one) => one.messageId === draft.messageId && one.place === draft.place)
  if (known !== undefined && known.chars >= draft.chars) return drafts
  return [...drafts.filter((one) => one !== known), draft].toSorted((one, other) => one.place - other.place)
}

/** True for a settled event that ends all drafts: their message is complete or withdrawn. */
export function endsDrafts(event: SessionEvent): boolean {
  if (isLive(event)) return false
  if (event.sessionUpdate === 'tool_call' || event.sessionUpdate === 'agent_message_chunk') return true
  const happened = sandlotEventOf(event)?.type
  return happened === 'message_withdrawn' || happened === 'prompt_started' || happened === 'prompt_ended'
}

/** The draft in a live event, if any. */
export function draftOf(event: SessionEvent): DraftedCall | undefined {
  const happened = sandlotEventOf(event)
  return happened?.type === 'call_drafted' && metaOf(event).live === true ? happened : undefined
}
