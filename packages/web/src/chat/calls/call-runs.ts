/** Runs of like successes: one row in place of many cards that say the same. */
import type { ToolKind } from '@sandlot/shared/chat/call'
import type { CallEntry, Entry } from '@sandlot/shared/transcript/entries'
import { formatCount, formatDuration } from '../../lib/format.ts'
import { phaseOf, ranOn } from '@sandlot/shared/transcript/call-words'
import { filesWritten } from './call-attachments.ts'

export interface CallRun {
  readonly type: 'run'
  /** That of its first call. */
  readonly id: string
  readonly calls: readonly CallEntry[]
}

/** Fewer are as quickly read one by one. */
const FEWEST = 3

/**
 * The entries, with each run of calls of one kind that went well as one. What only keeps the plan
 * is left out.
 */
export function withRuns(entries: readonly Entry[]): (Entry | CallRun)[] {
  const rows: (Entry | CallRun)[] = []
  let run: CallEntry[] = []
  const flush = () => {
    const [first] = run
    if (first !== undefined && run.length >= FEWEST) rows.push({ type: 'run', id: first.id, calls: run })
    else rows.push(...run)
    run = []
  }
  for (const entry of entries) {
    if (entry.type === 'call' && isPlanStep(entry)) continue
    const joins = entry.type === 'call' && isPlain(entry)
    if (!joins || (run[0] !== undefined && run[0].kind !== entry.kind)) flush()
    if (joins) run.push(entry)
    else rows.push(entry)
  }
  flush()
  return rows
}

/** Its plan is on the screen; a card would say it again. */
function isPlanStep(call: CallEntry): boolean {
  return call.kind === 'think' && call.status !== 'failed' && call.approval === undefined
}

/** It went well, and its card has nothing to look at. */
function isPlain(call: CallEntry): boolean {
  if (phaseOf(call) !== 'done' || ranOn(call) || call.approval?.question !== undefined) return false
  if (filesWritten(call).length > 0) return false
  return !call.content.some(({ type, ...item }) => type === 'content' && isSeen(item))
}

function isSeen(item: object): boolean {
  if (!('content' in item)) return false
  const { content } = item
  return typeof content === 'object' && content !== null && 'type' in content && content.type !== 'text'
}

const NOUN: Partial<Record<ToolKind, [one: string, many: string]>> = {
  execute: ['command', 'commands'],
  read: ['read', 'reads'],
  search: ['search', 'searches'],
  edit: ['edit', 'edits'],
  fetch: ['request', 'requests'],
}

/** “30 commands, 1.2 s”. */
export function runWords({ calls }: CallRun): string {
  const [one, many] = NOUN[calls[0]?.kind ?? 'other'] ?? ['call', 'calls']
  const ms = calls.reduce((sum, { timing }) => sum + (timing?.runMs ?? 0), 0)
  return `${formatCount(calls.length, one, many)}, ${formatDuration(ms)}`
}
