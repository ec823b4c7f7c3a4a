/**
 * Cuts a long text for the model: its head and its tail, and between them a notice of what is
 * missing and how to read it. Memory holds head and tail only, however much goes through.
 */
import { newlinesInText } from './count-newlines.ts'
import { safeCut, safeStart } from './ansi-text.ts'

/** Limits of one result for the model (`SANDLOT_RESULT_CHARS`, `SANDLOT_RESULT_LINES`). */
export interface ResultLimits {
  /** UTF-16 code units. */
  chars: number
  lines: number
}

export const DEFAULT_RESULT_LIMITS: ResultLimits = { chars: 10_000, lines: 1_000 }
const { chars: MAX_CHARS, lines: MAX_LINES } = DEFAULT_RESULT_LIMITS

/** For a result that its tool has cut: the tool's own words about the cut may come on top. */
export function withOwnWords({ chars, lines }: ResultLimits): { maxChars: number; maxLines: number } {
  return { maxChars: chars + 1_000, maxLines: lines + 20 }
}

/**
 * The head's share of what is kept; the tail has the rest, because ends of outputs say how it went.
 */
const HEAD_SHARE = 0.2
/** Beyond the limit, so that a cut can see the whole escape sequence or line that it falls into. */
const SLACK = 8192

interface TruncateOptions {
  /** UTF-16 code units of the result, notice included. Default 10,000. */
  maxChars?: number
  /** Lines of the result, notice included. Default 1,000. */
  maxLines?: number
  /** 0–1. Default a fifth; 1 keeps only the beginning. */
  headShare?: number
  /** Path of the whole text, to name in the notice. */
  file?: string
  /**
   * The call under which the whole text is stored, to name in the notice where there is no file.
   */
  callId?: string
  /** The size before cleaning, for the notice. Default: counted from the text. */
  whole?: { bytes: number; lines: number }
}

interface Truncated {
  text: string
  truncated: boolean
}

/**
 * `text`, or its head and tail with a notice. Never longer than `text`; never cut inside a
 * character or an escape sequence.
 */
export function truncateToolOutput(text: string, options: TruncateOptions = {}): Truncated {
  const keeper = createOutputKeeper(options.maxChars)
  keeper.push(text)
  return keeper.finish(options)
}

interface OutputKeeper {
  push(text: string): void
  /** The same result as `truncateToolOutput` of everything that was pushed. */
  finish(options?: Omit<TruncateOptions, 'maxChars'>): Truncated
}

export function createOutputKeeper(maxChars: number = MAX_CHARS): OutputKeeper {
  const keep = maxChars + SLACK
  let head = ''
  let tail = ''
  let chars = 0
  let newlines = 0

  return {
    push(text) {
      chars += text.length
      newlines += newlinesInText(text)
      if (head.length < keep) head += text.slice(0, keep - head.length)
      tail = text.length >= keep ? text.slice(-keep) : tail + text
      if (tail.length > 2 * keep) tail = tail.slice(-keep)
    },
    finish(options = {}) {
      const maxLines = options.maxLines ?? MAX_LINES
      const lines = newlines + (chars > 0 && !tail.endsWith('\n') ? 1 : 0)
      if (chars <= maxChars && lines <= maxLines) return { text: head, truncated: false }

      const notice = noticeUpdate({ chars, lines, ...options })
      const room = Math.min(maxChars, chars) - notice.length - 2
      if (room <= 0) return { text: firstPart(head, Math.min(maxChars, chars), maxLines), truncated: true }
      const share = options.headShare ?? HEAD_SHARE
      const headRoom = Math.floor(room * share)
      // The notice is a line, and the two line breaks round it end the lines that it stands
      // between.
      const lineRoom = Math.max(0, maxLines - 1)
      const headLines = Math.floor(lineRoom * share)
      const begin = firstPart(head, headRoom, headLines)
      // Without a limit of lines neither part has one: infinite less infinite would be none at all.
      const tailLines = Number.isFinite(lineRoom) ? lineRoom - headLines : lineRoom
      const end = lastPart(tail, room - headRoom, tailLines)
      return { text: [begin, notice, end].filter((part) => part !== '').join('\n'), truncated: true }
    },
  }
}

function noticeUpdate(about: { chars: number; lines: number } & TruncateOptions): string {
  const whole =
    about.whole === undefined
      ? `${grouped(about.chars)} characters in ${grouped(about.lines)} lines`
      : `${grouped(about.whole.bytes)} bytes in ${grouped(about.whole.lines)} lines`
  const how =
    about.file === undefined
      ? howToReadOn(about.callId)
      : `All of it (at most the first 16 MiB) is in ${about.file}: read parts with read_file (offset, limit), or find lines with search_text.`
  const cut = about.headShare === 1 ? 'The rest' : 'The middle'
  return `[… ${cut} of this output is left out here. The whole is ${whole}. ${how} …]`
}

function howToReadOn(callId: string | undefined): string {
  return callId === undefined
    ? 'To see the rest, ask for less at a time.'
    : `Read parts of it with read_tool_output (call_id ${JSON.stringify(callId)}; offset and limit, or pattern).`
}

/** The beginning, within both limits; ends at a line's end where one is near. */
function firstPart(text: string, chars: number, lines: number): string {
  let cut = Math.min(chars, positionAfterLines(text, lines))
  if (cut < text.length) {
    const lineEnd = text.lastIndexOf('\n', cut - 1)
    if (lineEnd >= cut / 2) cut = lineEnd + 1
  }
  return withoutLastBreak(text.slice(0, safeCut(text, cut)))
}

/** The end, within both limits; begins at a line's beginning where one is near. */
function lastPart(text: string, chars: number, lines: number): string {
  if (chars <= 0 || lines <= 0) return ''
  const size = text.length
  let start = Math.max(0, size - chars, positionBeforeLines(text, lines))
  if (start > 0 && text[start - 1] !== '\n') {
    const lineEnd = text.indexOf('\n', start)
    if (lineEnd >= 0 && lineEnd - start < (size - start) / 2) start = lineEnd + 1
  }
  return text.slice(safeStart(text, start))
}

function positionAfterLines(text: string, lines: number): number {
  let at = 0
  for (let line = 0; line < lines; line++) {
    const next = text.indexOf('\n', at)
    if (next < 0) return text.length
    at = next + 1
  }
  return at
}

/**
 * The start of the last `lines` lines. A line break at the very end ends the last line and begins
 * none.
 */
function positionBeforeLines(text: string, lines: number): number {
  let at = text.endsWith('\n') ? text.length - 1 : text.length
  for (let line = 0; line < lines; line++) {
    if (at <= 0) return 0
    const previous = text.lastIndexOf('\n', at - 1)
    if (previous < 0) return 0
    at = previous
  }
  return at + 1
}

function withoutLastBreak(text: string): string {
  return text.endsWith('\n') ? text.slice(0, -1) : text
}

/** 12,345, the same in every locale. */
export function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** Path on the service of a call's full output. */
export function outputUrl(sessionId: string, callId: string): string {
  return `/api/sessions/${encodeURIComponent(sessionId)}/outputs/${encodeURIComponent(callId)}`
}
