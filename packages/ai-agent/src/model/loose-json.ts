/** JSON as it stands in events that are not quite one JSON value. */
import { ARGUMENTS_MEMBERS } from './arguments.ts'
import { JsonScanner, isObject, parseJson } from './json.ts'

export interface LooseJson {
  values: unknown[]
  /** `[DONE]` stood among them. */
  done: boolean
  /** A value has begun and does not end. */
  cut: boolean
}

/**
 * The values of a text that is not one JSON value: several, one a line or glued together, with `data:`, a comma or `[DONE]`
 * between or behind; with `NaN`, or with control characters in its strings. What comes behind them and begins no value
 * is left out. Undefined when a value cannot be read at all.
 */
export function looseJson(text: string): LooseJson | undefined {
  const found: LooseJson = { values: [], done: false, cut: false }
  let rest = text
  for (;;) {
    rest = rest.replace(/^(?:\s|,|data:)+/, '')
    if (isDone(rest.slice(0, 6))) {
      found.done = true
      rest = rest.slice(6)
      continue
    }
    if (!/^[{[]/.test(rest)) return found
    const scanner = new JsonScanner()
    scanner.push(rest)
    if (scanner.end === undefined) return { ...found, cut: true }
    const value = parseNearly(rest.slice(0, scanner.end))
    if (!value.ok) return undefined
    found.values.push(value.value)
    rest = rest.slice(scanner.end)
  }
}

export function isDone(text: string): boolean {
  return /^"?\[done\]"?$/i.test(text.trim())
}

/** Strings, and what some write for numbers that JSON has no name for. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\b(?:NaN|Infinity)\b/gs
/** Stands for such a number until it is known where it stood. */
const NO_NUMBER = '\0NaN'

function parseNearly(text: string): ReturnType<typeof parseJson> {
  const parsed = parseJson(text)
  if (parsed.ok) return parsed
  const nearly = parseJson(
    text.replaceAll(TOKENS, (token) =>
      token.startsWith('"') ? escapeControls(token) : JSON.stringify(NO_NUMBER),
    ),
  )
  return nearly.ok ? { ok: true, value: withoutNumbers(nearly.value) } : nearly
}

/** Null where there is no number; but a call's arguments become the text that they were, for their reader to refuse. */
function withoutNumbers(value: unknown): unknown {
  if (value === NO_NUMBER) return null
  if (Array.isArray(value)) return value.map(withoutNumbers)
  if (!isObject(value)) return value
  const members = Object.entries(value).map(([name, inner]) => {
    const json = ARGUMENTS_MEMBERS.includes(name) && isObject(inner) ? JSON.stringify(inner) : ''
    const named = json.replaceAll(JSON.stringify(NO_NUMBER), 'NaN')
    return [name, named === json ? withoutNumbers(inner) : named]
  })
  return Object.fromEntries(members)
}

function escapeControls(text: string): string {
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  return text.replaceAll(/[\0-\x1f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
