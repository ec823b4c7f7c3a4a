/**
 * Events of a session as a snapshot shows them. An allow list: anything not named here is left out.
 */
import type { SandlotMeta } from '@sandlot/shared/chat/event-meta'
import { type EventOf, type SessionEvent, metaOf, sandlotEventOf, seqOf } from '@sandlot/shared/chat/events'
import type { Snapshot } from '@sandlot/shared/chat/shares'
import { withoutImageBytes } from './event-images.ts'

type Shown = Pick<Snapshot, 'id' | 'sessionId' | 'upTo' | 'outputs'>

/** Undefined: it is not in the snapshot. Images still have their bytes. */
export function eventOfSnapshot(event: SessionEvent, snapshot: Shown): SessionEvent | undefined {
  if ((seqOf(event) ?? Infinity) > snapshot.upTo || !isShown(event, snapshot.outputs)) return undefined
  const shown = { ...event, _meta: { sandlot: metaOfSnapshot(metaOf(event), snapshot) } }
  if (snapshot.outputs) return shown
  if (shown.sessionUpdate === 'tool_call') {
    const { sessionUpdate, toolCallId, title, name, kind, status, _meta } = shown
    return { sessionUpdate, toolCallId, title, name, kind, status, rawInput: {}, _meta }
  }
  if (shown.sessionUpdate === 'tool_call_update') {
    const { sessionUpdate, toolCallId, title, status, _meta } = shown
    return { sessionUpdate, toolCallId, title, status, _meta }
  }
  return shown
}

/** The same with addresses in place of images, which only this snapshot's link opens. */
export function withSnapshotAddresses(event: SessionEvent, { id }: Shown): SessionEvent {
  return withoutImageBytes(`/api/snapshots/${encodeURIComponent(id)}`, event)
}

function isShown(event: SessionEvent, outputs: boolean): boolean {
  switch (event.sessionUpdate) {
    case 'user_message_chunk':
    case 'agent_message_chunk':
    case 'agent_thought_chunk':
    case 'plan':
    case 'current_mode_update':
    case 'tool_call':
    case 'tool_call_update':
      return true
    case 'session_info_update':
      return isShownHere(event, outputs)
    case 'available_commands_update':
    case 'usage_update':
      return false
  }
}

function isShownHere(event: EventOf<'session_info_update'>, outputs: boolean): boolean {
  const happened = sandlotEventOf(event)
  switch (happened?.type) {
    case undefined:
      return event.title != null
    case 'prompt_started':
    case 'prompt_resumed':
    case 'prompt_ended':
    case 'turn_ended':
    case 'message_withdrawn':
    case 'stop_asked':
    case 'model_chosen':
    case 'model_changed':
      return true
    case 'approval_asked':
    case 'approval_answered':
    case 'background_ended':
    case 'files_changed':
      return outputs
    // Comments, standing instructions, queued messages.
    default:
      return false
  }
}

function metaOfSnapshot(
  { v, seq, at, promptId, author, turn, exit, reason, newReason, timing, outputInfo, event }: SandlotMeta,
  { id, outputs }: Shown,
): SandlotMeta {
  const meta = { v, seq, at, promptId, author, turn, exit, reason, newReason, timing, event }
  if (!outputs || outputInfo === undefined) return meta
  const call = outputInfo.url.slice(outputInfo.url.lastIndexOf('/'))
  const url = `/api/snapshots/${encodeURIComponent(id)}/outputs${call}`
  return { ...meta, outputInfo: { ...outputInfo, url } }
}
