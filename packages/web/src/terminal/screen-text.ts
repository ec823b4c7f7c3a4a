/** The part of xterm's buffer that a reader of its text needs. */
interface ScreenBuffer {
  readonly viewportY: number
  getLine(
    y: number,
  ): { readonly isWrapped: boolean; translateToString(trimRight?: boolean): string } | undefined
}

/** The lines that are on the screen, without the empty ones round them. A long line is one. */
export function screenText(buffer: ScreenBuffer, rows: number): string {
  const lines: string[] = []
  for (let row = 0; row < rows; row++) {
    const line = buffer.getLine(buffer.viewportY + row)
    if (line === undefined) continue
    const last = lines.length - 1
    if (line.isWrapped && last >= 0) lines[last] += line.translateToString(true)
    else lines.push(line.translateToString(true))
  }
  return lines.join('\n').replaceAll(/^\n+|\n+$/g, '')
}

/** A Markdown code block of any text. */
export function codeBlock(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${text}\n${fence}`
}
