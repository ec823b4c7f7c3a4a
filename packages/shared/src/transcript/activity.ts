/** Current activity in a transcript: running work, and waits for a user. */
import type { QueueWait } from '../chat/queue-wait.ts'
import type { CallEntry } from './entries.ts'
import type { Transcript } from './transcript.ts'

/** Calls that wait for the user, in order. */
export function pendingApprovals(transcript: Transcript): CallEntry[] {
  return transcript.entries.filter(
    (entry): entry is CallEntry =>
      entry.type === 'call' &&
      entry.approval !== undefined &&
      entry.approval.answer === undefined &&
      entry.endedAt === undefined,
  )
}

/** Activity of the running prompt; null when none runs. */
export type Activity =
  | { doing: 'thinking'; since: number }
  /** A request to the model failed, and is retried at `until`. */
  | { doing: 'trying_again'; wait: NonNullable<Transcript['wait']> }
  /** The prompt is queued, or a call waits for a sandbox. */
  | { doing: 'queued'; queue: QueueWait }
  /** All outcomes of a turn are complete and the model has not answered yet. */
  | { doing: 'reading_results'; since: number }
  | { doing: 'writing' }
  /** A call reports what it waits for before it can start. */
  | { doing: 'preparing'; message: string; since: number }
  | { doing: 'running'; calls: number }
  | { doing: 'waiting'; calls: number }

export function activityOf(transcript: Transcript): Activity | null {
  if (transcript.prompt === null) return null
  if (transcript.queue !== null) return { doing: 'queued', queue: transcript.queue }
  const waiting = pendingApprovals(transcript).length
  const calls = transcript.entries.filter((entry) => entry.type === 'call')
  const open = calls.filter(({ endedAt }) => endedAt === undefined)
  const preparing = open.find(({ startedAt, progress }) => startedAt === undefined && progress !== undefined)
  if (preparing?.progress !== undefined && open.every(({ startedAt }) => startedAt === undefined))
    return { doing: 'preparing', message: preparing.progress.message, since: preparing.progress.since }
  if (open.length > waiting) return { doing: 'running', calls: open.length - waiting }
  if (waiting > 0) return { doing: 'waiting', calls: waiting }
  if (transcript.drafts.length > 0) return { doing: 'writing' }
  if (transcript.wait !== null) return { doing: 'trying_again', wait: transcript.wait }
  const last = transcript.entries.at(-1)
  if (last?.type === 'message' && last.role !== 'user' && !last.settled) return { doing: 'writing' }
  if (last?.type === 'call') return { doing: 'reading_results', since: last.endedAt ?? last.announcedAt }
  return { doing: 'thinking', since: last?.at ?? transcript.prompt.startedAt }
}
