/**
 * Characters that are in a text but not on the screen, or that turn the order of what is: controls, bidirectional
 * marks, zero-width and tag characters. A command that waits for approval must not hide anything, so they are shown
 * by number.
 */
const INVISIBLE = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

export interface TextPart {
  text: string
  /** `U+202E`: stands for one character that would not be seen. */
  hidden?: string
}

/** Split into what is seen and what is not. Joining the `text` of all parts gives the input. */
export function revealInvisible(text: string): TextPart[] {
  const parts: TextPart[] = []
  let at = 0
  for (const match of text.matchAll(INVISIBLE)) {
    if (match.index > at) parts.push({ text: text.slice(at, match.index) })
    const code = match[0].codePointAt(0) ?? 0
    parts.push({ text: match[0], hidden: `U+${code.toString(16).toUpperCase().padStart(4, '0')}` })
    at = match.index + match[0].length
  }
  if (at < text.length) parts.push({ text: text.slice(at) })
  return parts
}
