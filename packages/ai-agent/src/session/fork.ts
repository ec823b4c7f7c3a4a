/**
 * The log of a session that branches off from a prompt of another one. Numbers are dense again;
 * events of the old session alone are left out: approvals and their answers, queued messages,
 * request ids, Stops, background commands.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import type { SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import { type SessionEvent, isOutcome, metaOf, sandlotEventOf, seqOf } from '@sandlot/shared/chat/events'
import { branchWith } from '../history/branch.ts'
import { leftElsewhere } from '../tools/background/jobs.ts'
import { outputUrl } from '../tools/output/truncate-output.ts'

export interface ForkPoint {
  promptId: string
  /** `before`: without the prompt, to say it in other words. `after`: with its answer. */
  where: 'before' | 'after'
}

/** `sessionId`: the new one. Throws `not_found`, `busy` (after a prompt that has not ended). */
export function forkedLog(log: readonly SessionEvent[], point: ForkPoint, sessionId: string): SessionEvent[] {
  const branch = branchWith(log, point.promptId)
  const copied = branch.slice(0, endOf(branch, point)).filter((event) => !isLeftBehind(event))
  /** Old number → new one. */
  const numbers = new Map(copied.map((event, place) => [seqOf(event) ?? 0, place + 1]))
  // A summary stands for everything up to a number; what stands there now is the last kept event up
  // to it.
  const atMost = (seq: number): number =>
    copied.reduce(
      (last, event) => ((seqOf(event) ?? 0) <= seq ? (numbers.get(seqOf(event) ?? 0) ?? last) : last),
      0,
    )
  return copied.map((event, place) => moved(event, place + 1, sessionId, atMost))
}

/** The number of events of the log before the point. */
function endOf(log: readonly SessionEvent[], { promptId, where }: ForkPoint): number {
  const placeOf = (type: SandlotEvent['type']): number =>
    log.findIndex((event) => sandlotEventOf(event)?.type === type && metaOf(event).promptId === promptId)
  const start = placeOf('prompt_started')
  if (start === -1) throw new SandlotError('not_found', 'There is no such message in this chat.')
  if (where === 'before') return start
  const end = placeOf('prompt_ended')
  if (end === -1) {
    throw new SandlotError(
      'busy',
      'The agent is still at work on this message. Wait until it is done, or stop it.',
    )
  }
  return end + 1
}

const LEFT_BEHIND: ReadonlySet<SandlotEvent['type']> = new Set([
  'approval_asked',
  'approval_answered',
  'message_queued',
  'message_unqueued',
  'stop_asked',
])

function isLeftBehind(event: SessionEvent): boolean {
  const happened = sandlotEventOf(event)
  return happened !== undefined && LEFT_BEHIND.has(happened.type)
}

function moved(
  event: SessionEvent,
  seq: number,
  sessionId: string,
  atMost: (seq: number) => number,
): SessionEvent {
  const meta = metaOf(event)
  const { outputInfo, event: happened } = meta
  const sandlot = {
    ...meta,
    seq,
    ...(outputInfo === undefined || event.sessionUpdate !== 'tool_call_update'
      ? {}
      : { outputInfo: { ...outputInfo, url: outputUrl(sessionId, event.toolCallId) } }),
    event: happened === undefined ? undefined : movedEvent(happened, atMost),
  }
  const settled = isOutcome(event) ? leftElsewhere(event) : event
  return { ...settled, _meta: { ...event._meta, sandlot } }
}

function movedEvent(event: SandlotEvent, atMost: (seq: number) => number): SandlotEvent {
  if (event.type === 'prompt_started') {
    // One branch needs no names of what is followed.
    const { requestId: _theirs, follows: _before, ...rest } = event
    return rest
  }
  if (event.type !== 'compacted') return event
  const { prunedUpTo } = event
  return {
    ...event,
    upTo: atMost(event.upTo),
    prunedUpTo: prunedUpTo === undefined ? undefined : atMost(prunedUpTo),
  }
}
