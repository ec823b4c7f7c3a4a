/** Entries of calls: creation and updates by settled events. */
import { type EventOf, isOutcome, metaOf } from '../chat/events.ts'
import { failureOf } from '../chat/reasons.ts'
import { type FailurePattern, patternOf } from './failure-pattern.ts'
import { EMPTY_OUTPUT } from './live-output.ts'
import type { CallEntry, Entry } from './entries.ts'

/** The entry of a call that was just announced. */
export function announcedCall(event: EventOf<'tool_call'>): CallEntry {
  const meta = metaOf(event)
  return {
    type: 'call',
    id: event.toolCallId,
    name: event.name,
    title: event.title,
    kind: event.kind,
    status: event.status,
    rawInput: event.rawInput,
    locations: event.locations ?? [],
    content: event.content ?? [],
    output: EMPTY_OUTPUT,
    promptId: meta.promptId,
    turn: meta.turn,
    announcedAt: meta.at,
  }
}

/** The entry after a settled update; an ended call does not change. */
export function updatedCall(call: CallEntry, event: EventOf<'tool_call_update'>): CallEntry {
  if (call.status === 'completed' || call.status === 'failed') return call
  const meta = metaOf(event)
  const changed: CallEntry = {
    ...call,
    title: event.title ?? call.title,
    status: event.status ?? call.status,
    locations: event.locations ?? call.locations,
    content: event.content ?? call.content,
    rawOutput: event.rawOutput ?? call.rawOutput,
    outputInfo: meta.outputInfo ?? call.outputInfo,
    exit: meta.exit ?? call.exit,
    reason: failureOf(meta) ?? call.reason,
    timing: meta.timing ?? call.timing,
  }
  if (isOutcome(event)) return { ...withoutProgress(changed), output: EMPTY_OUTPUT, endedAt: meta.at }
  if (event.status === 'in_progress') return { ...changed, startedAt: call.startedAt ?? meta.at }
  return changed
}

function withoutProgress(call: CallEntry): CallEntry {
  const { progress: _gone, ...rest } = call
  return rest
}

/** The common cause of a prompt's last failed calls, if any. */
export function failuresOf(
  entries: readonly Entry[],
  promptId: string | undefined,
): FailurePattern | undefined {
  // Entries of a prompt are adjacent, and its own are the last.
  const others = (entry: Entry) => 'promptId' in entry && entry.promptId !== promptId
  const calls = entries.slice(entries.findLastIndex(others) + 1).flatMap((entry) => {
    if (entry.type !== 'call' || entry.promptId !== promptId || entry.endedAt === undefined) return []
    const { id: callId, status, reason, exit, rawOutput } = entry
    return [{ callId, failed: status === 'failed', reason, exit, text: rawOutput?.forModel ?? '' }]
  })
  return patternOf(calls)
}
