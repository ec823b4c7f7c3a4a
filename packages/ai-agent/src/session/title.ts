/** Characters. */
const TITLE_LENGTH = 60

/** A session's name from its first message: the first line with words, cut between words. */
export function titleOf(text: string): string {
  const line = text.split('\n').find((one) => one.trim() !== '') ?? ''
  const words = line.replaceAll(/\s+/g, ' ').trim()
  const characters = Array.from(words)
  if (characters.length <= TITLE_LENGTH) return words === '' ? 'New chat' : words
  const cut = characters.slice(0, TITLE_LENGTH).join('')
  const space = cut.lastIndexOf(' ')
  return `${space > TITLE_LENGTH / 2 ? cut.slice(0, space) : cut.trimEnd()}…`
}
