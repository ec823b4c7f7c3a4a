/** Compactions of a conversation, from its log. Pure. */
import { type SessionEvent, metaOf, sandlotEventOf, seqOf } from '@sandlot/shared/chat/events'

export interface Compaction {
  /** Stands for everything up to `upTo`. */
  summary: string
  /** Number of the last event that the summary stands for; 0: there is none. */
  upTo: number
  /** Number of the event that has the summary; 0: there is none. */
  at: number
  /** Number of the last event whose call's result is left out. */
  prunedUpTo: number
}

const NONE: Compaction = { summary: '', upTo: 0, at: 0, prunedUpTo: 0 }

// These texts are part of stored histories: a change makes every cached prefix worthless once.

/** In place of a result that was left out. */
export const PRUNED =
  '[The result of this call was left out to make room. Make the call again if you need it.]'

const OPENING =
  'The conversation before this point was summarised to make room. This is the summary; go on from it.'

/** The state of the last compaction, of summary and pruning each. */
export function compactionOf(log: readonly SessionEvent[]): Compaction {
  return log.reduce((before, event, index) => {
    const happened = sandlotEventOf(event)
    if (happened?.type !== 'compacted') return before
    const prunedUpTo = Math.max(before.prunedUpTo, happened.prunedUpTo ?? 0)
    // An empty summary stands for nothing: only results were left out.
    if (happened.summary === '') return { ...before, prunedUpTo }
    return { summary: happened.summary, upTo: happened.upTo, at: seqOf(event) ?? index + 1, prunedUpTo }
  }, NONE)
}

/**
 * The first message of a conversation that was summarised. `asked`: the user's last message,
 * repeated; `next`: the one that follows.
 */
export function openingText(
  { summary }: Compaction,
  asked: string | undefined,
  next: string | undefined,
): string {
  const parts = [OPENING, `<summary>\n${summary}\n</summary>`]
  if (asked !== undefined) parts.push(`My last message, which you are working on:\n\n${asked}`)
  if (next !== undefined) parts.push(next)
  return parts.join('\n\n')
}

/**
 * Paths that calls of this log changed, in the order of their first change: what edited, deleted or
 * moved and succeeded.
 */
export function changedFiles(log: readonly SessionEvent[]): string[] {
  const paths = new Map<string, readonly string[]>()
  const changed = new Set<string>()
  for (const event of log) {
    if (event.sessionUpdate === 'tool_call' && ['edit', 'delete', 'move'].includes(event.kind)) {
      paths.set(event.toolCallId, event.locations?.map(({ path }) => path) ?? [])
    } else if (event.sessionUpdate === 'tool_call_update' && event.status === 'completed') {
      const diffs = event.content?.flatMap((part) => (part.type === 'diff' ? [part.path] : [])) ?? []
      for (const path of [...(paths.get(event.toolCallId) ?? []), ...diffs]) changed.add(path)
    }
  }
  return [...changed]
}

/**
 * True if the provider has refused in this turn because the context is full, and room was made to
 * the end: the new size is reported last, so a process that died between two steps leaves the rest
 * of them to the next one.
 */
export function overflowedBefore(log: readonly SessionEvent[], promptId: string, turn: number): boolean {
  const ofTurn = log.filter((event) => metaOf(event).promptId === promptId && metaOf(event).turn === turn)
  const made = ofTurn.findIndex((event) => {
    const happened = sandlotEventOf(event)
    return happened?.type === 'compacted' && happened.why === 'overflow'
  })
  return made !== -1 && ofTurn.slice(made).some((event) => event.sessionUpdate === 'usage_update')
}
