/** The change of a file, for the screen. */
import type { ToolCallContent } from '@sandlot/shared/chat/call'
import { shownPath } from './workspace-path.ts'

/** Characters of both sides together. */
const MAX_DIFF = 200_000
const CONTEXT_LINES = 3

/**
 * `oldText`: undefined for a new file. A long file is reduced to the lines that changed, with a
 * little round them; a change that is too long even so is not shown.
 */
export function diffContent(path: string, oldText: string | undefined, newText: string): ToolCallContent[] {
  const whole = { oldText: oldText ?? null, newText }
  const shown = sizeOf(whole) <= MAX_DIFF || oldText === undefined ? whole : changedPart(oldText, newText)
  return sizeOf(shown) > MAX_DIFF ? [] : [{ type: 'diff', path: shownPath(path), ...shown }]
}

function sizeOf(diff: { oldText: string | null; newText: string }): number {
  return (diff.oldText ?? '').length + diff.newText.length
}

function changedPart(oldText: string, newText: string): { oldText: string; newText: string } {
  const before = oldText.split('\n')
  const after = newText.split('\n')
  const shortest = Math.min(before.length, after.length)
  let same = 0
  while (same < shortest && before[same] === after[same]) same++
  let sameAtEnd = 0
  while (sameAtEnd < shortest - same && before.at(-1 - sameAtEnd) === after.at(-1 - sameAtEnd)) sameAtEnd++
  const from = Math.max(0, same - CONTEXT_LINES)
  const keep = Math.max(0, sameAtEnd - CONTEXT_LINES)
  const part = (lines: string[]): string => lines.slice(from, lines.length - keep).join('\n')
  return { oldText: part(before), newText: part(after) }
}
