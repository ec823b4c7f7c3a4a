/** In place of `rehype-raw`, which this page does not use: HTML in an answer stays text. */
export default function withoutHtml(): void {
  throw new Error('HTML in Markdown is not parsed here.')
}
