import type { Rendered } from '../../src/terminal/ansi-text.ts'

/** The visible characters only. */
export function plainText(rendered: Rendered): string {
  return rendered.blocks
    .flatMap((block) => block.lines.map((line) => line.map((span) => span.text).join('')))
    .join('\n')
}
