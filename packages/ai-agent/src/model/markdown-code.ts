/** Places of code in Markdown, which may mention any tag. */

/** Markdown: three or more of a kind at the beginning of a line, then the language. */
const FENCE = /^[ \t>]*(`{3,}|~{3,})(.*)$/

/**
 * Where code stands in a text (Markdown), in UTF-16 code units. `whole`: every block ends, and does
 * so before the next begins; a text in which that is not so was cut off somewhere.
 */
export function codeIn(text: string): { spans: { from: number; to: number }[]; whole: boolean } {
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
