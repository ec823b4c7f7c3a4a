/** Exact replacement in a text, and help when the text to replace is not there. Pure. */
import { lineEndOf, withLineEnd } from './line-ends.ts'
import { ToolError } from './tool-error.ts'

const SHOWN_LINES = 8
const MAX_LINES_COMPARED = 50_000

export interface TextEdit {
  oldText: string
  newText: string
  replaceAll: boolean
}

/**
 * All of `edits`, each on what the ones before it made; or none. `replaced`: places, of all edits
 * together.
 * @throws ToolError that says which one does not fit, and why.
 */
export function applyEdits(
  content: string,
  edits: readonly TextEdit[],
  where: string,
): { text: string; replaced: number } {
  let text = content
  let replaced = 0
  for (const [index, edit] of edits.entries()) {
    const place =
      edits.length === 1 ? where : `${where} (edit ${index + 1} of ${edits.length}; none was made)`
    const edited = applyEdit(text, edit, place)
    text = edited.text
    replaced += edited.replaced
  }
  return { text, replaced }
}

/** The lines of `content` that each edit would touch, or the nearest there are. */
export function placesOf(content: string, edits: readonly TextEdit[]): string {
  return edits
    .map((edit) => {
      const { oldText } = fitted(content, edit)
      const at = content.indexOf(oldText)
      if (at < 0) return nearestPlace(content, edit.oldText)
      const line = content.slice(0, at).split('\n').length - 1
      const lines = content.split('\n')
      return `old_text is there now:\n${excerpt(lines, line, oldText.split('\n').length)}`
    })
    .join('\n')
}

/** @throws ToolError that says what to change in the call. `where` names the file. */
function applyEdit(content: string, edit: TextEdit, where: string): { text: string; replaced: number } {
  const { oldText, newText } = fitted(content, edit)
  if (oldText === newText) {
    throw new ToolError('invalid_arguments', 'old_text and new_text are the same; nothing would change.')
  }
  const parts = content.split(oldText)
  const found = parts.length - 1
  if (found === 0)
    throw new ToolError(
      'tool_error',
      `old_text was not found in ${where}. ${nearestPlace(content, edit.oldText)}`,
    )
  if (found > 1 && !edit.replaceAll) {
    const lines = lineNumbers(parts).slice(0, 10).join(', ')
    throw new ToolError(
      'tool_error',
      `old_text was found ${found} times in ${where} (lines ${lines}${found > 10 ? ', …' : ''}). Add lines round it until it is unique, or set replace_all.`,
    )
  }
  return { text: parts.join(newText), replaced: found }
}

/**
 * The edit with CR LF where the file has that and the edit does not name line ends that match.
 * Files with CR LF are shown with plain line ends, so models write those.
 */
function fitted(content: string, edit: TextEdit): TextEdit {
  const { oldText, newText } = edit
  const fits = oldText.includes('\n') ? content.includes(oldText) : lineEndOf(content) !== '\r\n'
  if (fits || !content.includes('\r\n')) return edit
  return { ...edit, oldText: withLineEnd(oldText, '\r\n'), newText: withLineEnd(newText, '\r\n') }
}

function lineNumbers(parts: readonly string[]): number[] {
  let line = 1
  // The text between two places includes neither, so the places' own line breaks do not count
  // twice.
  return parts.slice(0, -1).map((part) => (line += part.split('\n').length - 1))
}

/** The most similar place in the file, with the exact lines to copy. */
function nearestPlace(content: string, oldText: string): string {
  const lines = content.split('\n').slice(0, MAX_LINES_COMPARED)
  const wanted = oldText.split('\n').filter((line) => line.trim() !== '')
  const first = wanted[0]
  if (first === undefined) return 'Read the file to see its exact text.'

  const loose = lines.map(squeezed)
  const exact = loose.findIndex((line, at) => line === squeezed(first) && matchesFrom(loose, at, wanted))
  if (exact >= 0)
    return `It is there with other white space. The exact lines are:\n${excerpt(lines, exact, wanted.length)}`

  const likely = mostAlike(loose, squeezed(first))
  if (likely === undefined) return 'Nothing in the file is like it; read the file to see its exact text.'
  return `The nearest lines are:\n${excerpt(lines, likely, wanted.length)}`
}

function squeezed(line: string): string {
  return line.trim().replaceAll(/\s+/g, ' ')
}

/** The wanted lines follow one another from `at`, blank lines aside. */
function matchesFrom(lines: readonly string[], at: number, wanted: readonly string[]): boolean {
  let index = at
  return wanted.every((line) => {
    while (lines[index] === '') index++
    return lines[index++] === squeezed(line)
  })
}

/** The line that shares the most words with `wanted`, if it shares at least half. */
function mostAlike(lines: readonly string[], wanted: string): number | undefined {
  const words = new Set(wordsOf(wanted))
  if (words.size === 0) return undefined
  let best: { at: number; score: number } | undefined
  for (const [at, line] of lines.entries()) {
    const theirs = new Set(wordsOf(line))
    const score = likeness(words, theirs)
    if (score >= 0.5 && (best === undefined || score > best.score)) best = { at, score }
  }
  return best?.at
}

/** 0–1: the share of the words of both that are in both. */
function likeness(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const common = [...a].filter((word) => b.has(word)).length
  return common / (a.size + b.size - common)
}

function wordsOf(line: string): string[] {
  return line.match(/[\p{L}\p{N}_]+/gu) ?? []
}

function excerpt(lines: readonly string[], at: number, count: number): string {
  const shown = lines.slice(at, at + Math.min(count, SHOWN_LINES))
  return shown.map((line, index) => `${at + index + 1}\t${line.replace(/\r$/, '').slice(0, 500)}`).join('\n')
}
