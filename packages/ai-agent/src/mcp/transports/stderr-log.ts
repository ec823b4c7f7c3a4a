/** What a server prints to stderr, into the log: line by line, short, not too much of it, without the secrets it was given. */
import type { ToolLog } from '../../tools/tool.ts'

const LINE_CHARS = 500
const LINES = 20
const PER_MS = 10_000

export interface StderrLog {
  push(bytes: Uint8Array): void
  /** The last line begun, and how many were left out. */
  end(): void
  /** The last thing it said, for a message; empty when it said nothing. */
  lastLine(): string
}

export function createStderrLog(log: ToolLog, server: string, scrub: (text: string) => string): StderrLog {
  const decoder = new TextDecoder()
  let begun = ''
  let last = ''
  let windowEnds = 0
  let inWindow = 0
  let leftOut = 0

  const tellLeftOut = (): void => {
    if (leftOut > 0) log.info({ server, lines: leftOut }, 'more lines of an MCP server were left out')
    leftOut = 0
  }
  const say = (line: string): void => {
    const text = scrub(line.slice(0, LINE_CHARS))
      .replaceAll(/\p{Cc}/gu, ' ')
      .trimEnd()
    if (text === '') return
    last = text
    const now = performance.now()
    if (now >= windowEnds) {
      tellLeftOut()
      windowEnds = now + PER_MS
      inWindow = 0
    }
    if (++inWindow > LINES) leftOut++
    else log.info({ server, line: text }, 'an MCP server says')
  }
  return {
    push(bytes) {
      const lines = (begun + decoder.decode(bytes, { stream: true })).split('\n')
      begun = (lines.pop() ?? '').slice(0, LINE_CHARS)
      for (const line of lines) say(line)
    },
    end() {
      say(begun)
      begun = ''
      tellLeftOut()
    },
    lastLine: () => last,
  }
}
