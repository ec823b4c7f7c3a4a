/** Conversion of rows into records. Values stored as text are validated here. */
import { MODES } from '@sandlot/shared/chat/mode'
import { END_REASONS, shortOfItsEnd } from '@sandlot/shared/chat/reasons'
import { sessionEvent } from '@sandlot/shared/chat/events'
import type { SessionSummary } from '@sandlot/shared/chat/frames'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { messageOf } from '@sandlot/shared/base/errors'
import type { Selectable } from 'kysely'
import { StorageError } from '../storage-error.ts'
import type { SessionsSchema } from './sessions.ts'
import type { ApprovalRow, OutputRow, SessionRow } from './records.ts'

/** The user of a session that is being copied or removed. */
export const NO_USER = ''

export function toSessionRow(
  row: Selectable<SessionsSchema['sessions']> & { waiting: number | null },
): SessionRow {
  return {
    id: row.id,
    userId: row.user_id,
    cwd: row.cwd,
    title: row.title,
    mode: toMode(row.mode),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    lastSeq: row.last_seq,
    runningPromptId: row.running_prompt_id,
    waiting: row.waiting ?? 0,
    ended: toEnd(row),
    unsavedEndAt: row.ended_reason === 'store_failed' ? (row.ended_at ?? undefined) : undefined,
  }
}

/** A session's summary, the same for each reader. */
export function toSessionSummary(row: SessionRow): SessionSummary {
  const { id, title, updatedAt, mode, runningPromptId, waiting, ended, unsavedEndAt } = row
  const running = runningPromptId !== null && unsavedEndAt === undefined
  const line = { sessionId: id, title, updatedAt, mode, running, waiting }
  if (unsavedEndAt !== undefined) return { ...line, endedAt: unsavedEndAt, ended: shortOfItsEnd('error') }
  return ended === undefined ? line : { ...line, endedAt: ended.at, ended: shortOfItsEnd(ended.reason) }
}

function toEnd({ ended_reason, ended_at }: Selectable<SessionsSchema['sessions']>): SessionRow['ended'] {
  const reason = END_REASONS.find((known) => known === ended_reason)
  return reason === undefined || ended_at === null ? undefined : { reason, at: ended_at }
}

/** A damaged mode becomes the most careful one: lists must not fail because of one row. */
function toMode(text: string): Mode {
  return MODES.find((known) => known === text) ?? 'manual'
}

/** Set the event's number, replacing any other. */
export function withSeq(event: SessionEvent, seq: number): SessionEvent {
  return { ...event, _meta: { ...event._meta, sandlot: { ...event._meta.sandlot, seq } } }
}

export function toEvent(sessionId: string, row: { seq: number; json: string }): SessionEvent {
  try {
    return withSeq(sessionEvent.parse(JSON.parse(row.json)), row.seq)
  } catch (error) {
    throw new StorageError(
      'corrupt',
      `Event ${row.seq} of session ${sessionId} is damaged: ${messageOf(error)}`,
      {
        cause: error,
      },
    )
  }
}

/** Undefined if it is damaged. */
export function readableEvent(
  sessionId: string,
  row: { seq: number; json: string },
): SessionEvent | undefined {
  try {
    return toEvent(sessionId, row)
  } catch {
    return undefined
  }
}

export function toOutputRow(row: Selectable<SessionsSchema['outputs']>): OutputRow {
  return {
    sessionId: row.session_id,
    callId: row.call_id,
    storedBytes: row.stored_bytes,
    totalBytes: row.total_bytes,
    lines: row.lines,
    complete: row.complete === 1,
    removed: row.cut === 'retention' || undefined,
  }
}

export function toApprovalRow(row: Selectable<SessionsSchema['approvals']>): ApprovalRow {
  return {
    sessionId: row.session_id,
    toolCallId: row.tool_call_id,
    askedAt: row.asked_at,
    expiresAt: row.expires_at,
    answeredAt: row.answered_at,
    optionId: row.option_id,
    by: row.answered_by,
  }
}
