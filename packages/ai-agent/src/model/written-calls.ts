/**
 * Calls that stand in an answer's text, because the server in front of the model did not read them
 * out of it. They are recognised, and never run: what stands in a text may be meant as text.
 */
import { ARGUMENTS_MEMBERS, readArguments } from './arguments.ts'
import { type NamedTool, toolNamed } from './call-names.ts'
import { isObject, parseJson, textMember } from './json.ts'
import { parseLenient } from './lenient-json.ts'
import { codeIn } from './markdown-code.ts'
import { CALL_ENVELOPES, type CallEnvelope, STOP_TOKENS } from './profiles.ts'

/** At most so many beginnings of a kind are tried: one in a call's arguments is none. */
const MOST_BEGINNINGS = 20

/**
 * The offered tool that a text calls at its end: in a whole envelope, outside of code, with nothing
 * behind it. Undefined for any other text.
 */
export function writtenCall<T extends NamedTool>(text: string, tools: readonly T[]): T | undefined {
  // One character each, so that places stay.
  const whole = withoutStopTokens(text.replaceAll('\uff5c', '|').replaceAll('\u2581', '_'))
  for (const envelope of CALL_ENVELOPES) {
    const inner = withoutClose(whole, envelope.close)
    if (inner === undefined) continue
    for (const [at, from] of beginnings(inner, envelope.open)) {
      const named = nameIn(inner.slice(from).trim(), envelope)
      const tool = named === undefined ? undefined : toolNamed(named, tools)
      if (tool === undefined) continue
      const isCode = codeIn(text).spans.some((code) => code.from <= at && at < code.to)
      return isCode ? undefined : tool
    }
  }
  return undefined
}

function withoutStopTokens(text: string): string {
  for (let rest = text.trimEnd(); ;) {
    const token = STOP_TOKENS.find((end) => rest.endsWith(end))
    if (token === undefined) return rest
    rest = rest.slice(0, -token.length).trimEnd()
  }
}

/** Undefined where it does not end so. */
function withoutClose(text: string, close: readonly string[]): string | undefined {
  let rest = text
  for (const token of close.toReversed()) {
    if (!rest.endsWith(token)) return undefined
    rest = rest.slice(0, -token.length).trimEnd()
  }
  return rest
}

/** Places where an envelope opens and where the call's own text begins, the last first. */
function* beginnings(text: string, open: string): Generator<[at: number, from: number]> {
  let at = text.lastIndexOf(open)
  for (let tried = 0; at !== -1 && tried < MOST_BEGINNINGS; tried++) {
    yield [at, open.endsWith('=') ? at : at + open.length]
    at = at === 0 ? -1 : text.lastIndexOf(open, at - 1)
  }
}

// ── One call ────────────────────────────────────────────────────────────────────────────────────

/** The name of the call that this text is, as a whole; of several, the last one's. */
function nameIn(text: string, { close, between }: CallEnvelope): string | undefined {
  if (/^[[{]/.test(text)) return nameInJson(text)
  if (text.startsWith('<')) return nameInTags(text)
  if (between !== undefined) return nameBetween(text, between)
  return close.length === 0 ? undefined : nameInKeys(text)
}

/** `{"name": …, "arguments": {…}}`, a list of such, or one a line. */
function nameInJson(text: string): string | undefined {
  const one = parseLenient(text)
  const lines = one.ok
    ? [one]
    : text
        .split(/\n|;\s*(?=\{)/)
        .filter((line) => line.trim() !== '')
        .map((line) => parseJson(line))
  if (!lines.every((line) => line.ok)) return undefined
  const calls = lines.flatMap(({ value }) => (Array.isArray(value) ? (value as unknown[]) : [value]))
  const names = calls.map(nameOfObject)
  return names.includes(undefined) ? undefined : names.at(-1)
}

function nameOfObject(call: unknown): string | undefined {
  if (!isObject(call)) return undefined
  const body = isObject(call['function']) ? call['function'] : call
  const args = ARGUMENTS_MEMBERS.map((name) => body[name]).find((value) => value !== undefined)
  const fits =
    args === undefined || args === null || isObject(args) || (typeof args === 'string' && isArguments(args))
  return fits ? (textMember(body, 'name') ?? textMember(body, 'tool_name')) : undefined
}

const isArguments = (text: string): boolean => readArguments(text, false).invalid === undefined

/** `<function=x>`, and `<invoke name="x">` with or without a namespace. */
const CALL_TAG = /<(?:(function)=([^\s<>]+)|((?:[\w-]+:|\|DSML\|)?invoke) name="([^"<>]+)")>/g

function nameInTags(text: string): string | undefined {
  const opening = [...text.matchAll(CALL_TAG)]
  const [first] = opening
  const last = opening.at(-1)
  if (first?.index !== 0 || last === undefined) return undefined
  const close = `</${last[1] ?? last[3]}>`
  if (!text.endsWith(close)) return undefined
  const body = text.slice(last.index + last[0].length, -close.length).trim()
  return isBody(body) ? (last[2] ?? last[4]) : undefined
}

const PARAMETER = /^<((?:[\w-]+:|\|DSML\|)?parameter)(?:=[^\s<>]+| name="[^"<>]+"[^<>]*)>/

/** Parameters that all end, JSON, or nothing. */
function isBody(body: string): boolean {
  if (body === '') return true
  const tag = PARAMETER.exec(body)?.[1]
  if (tag === undefined) return body.startsWith('{') && isArguments(body)
  return body.endsWith(`</${tag}>`) && body.split(`<${tag}`).length === body.split(`</${tag}>`).length
}

/** `x`, then `<arg_key>` and `<arg_value>` for each argument. */
function nameInKeys(text: string): string | undefined {
  const [name = '', ...keys] = text.split('<arg_key>')
  const whole = keys.every(
    (key) => /^[^<]*<\/arg_key>\s*<arg_value>/.test(key) && key.trimEnd().endsWith('</arg_value>'),
  )
  return whole ? name.trim() : undefined
}

/** `x`, what stands between, and its arguments as JSON. */
function nameBetween(text: string, between: RegExp): string | undefined {
  const behindType = text.replace(/^function<\|tool_sep\|>/, '')
  const found = between.exec(behindType)
  if (found === null) return undefined
  const args = behindType.slice(found.index + found[0].length).trim()
  return /^(?:```|\{)/.test(args) && isArguments(args) ? behindType.slice(0, found.index).trim() : undefined
}
