/** In place of `mdast-util-to-markdown`: this page reads Markdown and never writes it. */
export const defaultHandlers = {}

export function toMarkdown(): void {
  throw new Error('Markdown is not written here.')
}
