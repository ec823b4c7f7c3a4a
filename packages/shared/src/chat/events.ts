/**
 * The vocabulary of Sandlot. An event happened in a session: an ACP v1 `SessionUpdate` with our
 * private data in `_meta.sandlot`. The same object travels from the tool to the screen, never
 * renamed.
 *
 * Settled events carry the whole value under their id, are stored before they are sent, and are
 * numbered: `seq` is dense per session and the only cursor. Live events (`live: true`) are never
 * stored, have no `seq`, and carry the id they belong to and their offset there.
 */
import { z } from 'zod'
import { callStatus, contentBlock, rawOutput, toolCallContent, toolKind, toolLocation } from './call.ts'
import { type MetaFields, type SandlotMeta, makeMeta, sandlotMeta } from './event-meta.ts'
import { mode } from './mode.ts'
import type { SandlotEvent } from './sandlot-event.ts'

const meta = z.looseObject({ sandlot: sandlotMeta })

// ── The kinds we emit
// ───────────────────────────────────────────────────────────────────────────────────

const planEntry = z.object({
  content: z.string(),
  priority: z.enum(['high', 'medium', 'low']),
  status: z.enum(['pending', 'in_progress', 'completed']),
})
export type PlanEntry = z.infer<typeof planEntry>

const chunk = { content: contentBlock, messageId: z.string(), _meta: meta }

export const sessionEvent = z.discriminatedUnion('sessionUpdate', [
  z.object({ sessionUpdate: z.literal('user_message_chunk'), ...chunk }),
  z.object({ sessionUpdate: z.literal('agent_message_chunk'), ...chunk }),
  z.object({ sessionUpdate: z.literal('agent_thought_chunk'), ...chunk }),
  z.object({
    sessionUpdate: z.literal('tool_call'),
    toolCallId: z.string(),
    title: z.string(),
    /** The tool's name as the model knows it. */
    name: z.string(),
    kind: toolKind,
    status: callStatus,
    /** The arguments: an object, or the model's own text where it was not one. */
    rawInput: z.unknown(),
    locations: z.array(toolLocation).optional(),
    content: z.array(toolCallContent).optional(),
    _meta: meta,
  }),
  z.object({
    sessionUpdate: z.literal('tool_call_update'),
    toolCallId: z.string(),
    title: z.string().optional(),
    status: callStatus.optional(),
    content: z.array(toolCallContent).optional(),
    locations: z.array(toolLocation).optional(),
    /** On an outcome, always. */
    rawOutput: rawOutput.optional(),
    _meta: meta,
  }),
  z.object({ sessionUpdate: z.literal('plan'), entries: z.array(planEntry), _meta: meta }),
  z.object({
    sessionUpdate: z.literal('available_commands_update'),
    availableCommands: z.array(z.object({ name: z.string(), description: z.string() })),
    _meta: meta,
  }),
  z.object({ sessionUpdate: z.literal('current_mode_update'), currentModeId: mode, _meta: meta }),
  z.object({
    sessionUpdate: z.literal('session_info_update'),
    title: z.string().nullish(),
    updatedAt: z.string().nullish(),
    _meta: meta,
  }),
  z.object({
    sessionUpdate: z.literal('usage_update'),
    used: z.number(),
    size: z.number(),
    cost: z.object({ amount: z.number(), currency: z.string() }).optional(),
    _meta: meta,
  }),
])

const { v, at, promptId, turn, offset } = sandlotMeta.shape
const liveMeta = z.strictObject({ v, at, promptId, turn, live: z.literal(true), offset })

/**
 * A live text of a model and nothing more: the most frequent event, checked in a third of the time
 * that `sessionEvent` takes, which accepts it too, and as it is.
 */
export const plainLiveText = z.strictObject({
  sessionUpdate: z.enum(['agent_message_chunk', 'agent_thought_chunk']),
  messageId: z.string(),
  content: z.strictObject({ type: z.literal('text'), text: z.string() }),
  _meta: z.strictObject({ sandlot: liveMeta }),
})

/** One event of a session, live or settled. */
export type SessionEvent = z.infer<typeof sessionEvent>
export type EventKind = SessionEvent['sessionUpdate']
export type EventOf<K extends EventKind> = Extract<SessionEvent, { sessionUpdate: K }>

// ── Reading
// ─────────────────────────────────────────────────────────────────────────────────────────────

export function metaOf(event: SessionEvent): SandlotMeta {
  return event._meta.sandlot
}

/** The event as readers get it: without what only the model's provider may see. */
export function forReaders(event: SessionEvent): SessionEvent {
  const { forProvider, ...sandlot } = metaOf(event)
  return forProvider === undefined ? event : { ...event, _meta: { ...event._meta, sandlot } }
}

export function isLive(event: SessionEvent): boolean {
  return event._meta.sandlot.live === true
}

/** The event's number, or undefined for a live or not yet stored one. */
export function seqOf(event: SessionEvent): number | undefined {
  return event._meta.sandlot.seq
}

/** The text of a chunk whose content is text, else the empty string. */
export function textOf(
  event: EventOf<'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk'>,
): string {
  return event.content.type === 'text' ? event.content.text : ''
}

/** One transaction's events, or one live event. */
export type EventGroup = readonly SessionEvent[]

/** True when the log has announced this call. */
export function isAnnounced(log: readonly SessionEvent[], callId: string): boolean {
  return log.some((event) => event.sessionUpdate === 'tool_call' && event.toolCallId === callId)
}

/** The settled update that ends a call. */
export type OutcomeEvent = EventOf<'tool_call_update'> & { status: 'completed' | 'failed' }

/** True for the settled update that ends a call. */
export function isOutcome(event: SessionEvent): event is OutcomeEvent {
  return (
    event.sessionUpdate === 'tool_call_update' &&
    !isLive(event) &&
    (event.status === 'completed' || event.status === 'failed')
  )
}

/** The Sandlot event that a `session_info_update` carries, if any. */
export function sandlotEventOf(event: SessionEvent): SandlotEvent | undefined {
  return event._meta.sandlot.event
}

// ── Writing
// ─────────────────────────────────────────────────────────────────────────────────────────────

/** An event that ACP has no kind for. */
export function makeSandlotEvent(
  event: SandlotEvent,
  fields: MetaFields,
  at: number,
): EventOf<'session_info_update'> {
  return { sessionUpdate: 'session_info_update', _meta: makeMeta({ ...fields, event }, at) }
}
