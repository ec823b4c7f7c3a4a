/**
 * Characters that are in a text but not on the screen, or that turn the order of what is: controls,
 * bidirectional marks, zero-width and tag characters. A command that waits for approval must not
 * hide anything, so they are shown by number.
 */
const INVISIBLE = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/**
 * Parts of a visible picture: ❤️ is a heart and a selector, 👩‍💻 are two pictures and a
 * joiner.
 */
const SELECTS = /\p{Extended_Pictographic}\p{Emoji_Modifier}?$/u
const JOINED = /^\p{Extended_Pictographic}/u

function isPartOfEmoji(text: string, at: number, character: string): boolean {
  const before = text.slice(Math.max(0, at - 5), at)
  if (character === '\u{fe0f}') return SELECTS.test(before)
  return (
    character === '\u{200d}' &&
    SELECTS.test(before.replace(/\u{fe0f}$/u, '')) &&
    JOINED.test(text.slice(at + 1, at + 3))
  )
}

interface TextPart {
  text: string
  /** `U+202E`: stands for one character that would not be seen. */
  hidden?: string
}

/** Split into what is seen and what is not. Joining the `text` of all parts gives the input. */
export function revealInvisible(text: string): TextPart[] {
  const parts: TextPart[] = []
  let at = 0
  for (const match of text.matchAll(INVISIBLE)) {
    if (isPartOfEmoji(text, match.index, match[0])) continue
    if (match.index > at) parts.push({ text: text.slice(at, match.index) })
    const code = match[0].codePointAt(0) ?? 0
    parts.push({ text: match[0], hidden: `U+${code.toString(16).toUpperCase().padStart(4, '0')}` })
    at = match.index + match[0].length
  }
  if (at < text.length) parts.push({ text: text.slice(at) })
  return parts
}

/** The text with the number of each such character in its place: for names that are read aloud. */
export function revealedText(text: string): string {
  return revealInvisible(text)
    .map((part) => part.hidden ?? part.text)
    .join('')
}
