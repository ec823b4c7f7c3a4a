/**
 * Thoughts that end and never began: the opening tag stood in the prompt, as the templates of many open models have it. A tag
 * that stands in code is what the text is about, and ends nothing.
 */
import type { TagPair } from './profiles.ts'

/** So many tags of a kind are looked at: there is one that counts, and whoever writes more makes no more work. */
const MOST_TAGS = 100

/** What a whole text says, told apart; undefined where no thoughts end in it, also where it only mentions the tag. */
export function impliedThought(
  text: string,
  pairs: readonly TagPair[],
): { text: string; thought: string } | undefined {
  if (!pairs.some(([, close]) => text.includes(close))) return undefined
  const code = codeIn(text)
  const isCode = (at: number): boolean => code.spans.some(({ from, to }) => from <= at && at < to)
  for (const [open, close] of pairs) {
    const end = placesOf(close, text).find((at) => {
      if (!isAlone(text, at, close)) return false
      // Thoughts may be cut off in a block of code. Of both readings the one is right that leaves no block open.
      return !isCode(at) || (!code.whole && codeIn(text.slice(at + close.length)).whole)
    })
    if (end === undefined) continue
    const begun = placesOf(open, text).some((at) => at < end && !isCode(at))
    if (!begun)
      return { thought: text.slice(0, end).trimStart(), text: text.slice(end + close.length).trimStart() }
  }
  return undefined
}

function placesOf(tag: string, text: string): number[] {
  const places: number[] = []
  for (let at = text.indexOf(tag); at !== -1 && places.length < MOST_TAGS;) {
    places.push(at)
    at = text.indexOf(tag, at + tag.length)
  }
  return places
}

/** At the beginning of its line, or at the end. */
function isAlone(text: string, at: number, tag: string): boolean {
  const behind = at + tag.length
  const lineEnd = text.indexOf('\n', behind)
  const before = text.slice(text.lastIndexOf('\n', at - 1) + 1, at)
  const after = text.slice(behind, lineEnd === -1 ? text.length : lineEnd)
  return before.trim() === '' || after.trim() === ''
}

/** Of Markdown: three or more of a kind at the beginning of a line, behind them the language. */
const FENCE = /^[ \t>]*(`{3,}|~{3,})(.*)$/

/**
 * Where code stands in a text (Markdown), in UTF-16 code units. `whole`: every block ends, and does so before the next begins;
 * a text in which that is not so was cut off somewhere.
 */
function codeIn(text: string): { spans: { from: number; to: number }[]; whole: boolean } {
  const spans: { from: number; to: number }[] = []
  let block: { fence: string; from: number } | undefined
  let whole = true
  let at = 0
  for (const line of text.split('\n')) {
    const [, fence = '', language = ''] = FENCE.exec(line) ?? []
    if (block === undefined) {
      // One with a backtick in its line is code within the line.
      if (fence !== '' && !language.includes('`')) block = { fence, from: at }
      else
        for (const { index, 0: inline } of line.matchAll(/`[^`]+`/g))
          spans.push({ from: at + index, to: at + index + inline.length })
    } else if (fence.startsWith(block.fence)) {
      if (language.trim() === '') {
        spans.push({ from: block.from, to: at })
        block = undefined
      } else whole = false
    }
    at += line.length + 1
  }
  if (block !== undefined) spans.push({ from: block.from, to: text.length })
  return { spans, whole: whole && block === undefined }
}
