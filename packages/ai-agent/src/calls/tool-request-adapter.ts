/**
 * The entry of the scheduler: whatever a model (or a client) sends as a call becomes one shape, or
 * a refusal that says what is wrong. Nothing behind this file looks at a raw call.
 */
import { nearest } from '@sandlot/shared/config/names'
import type { FailureReason } from '@sandlot/shared/reasons'
import { argumentsProblem } from '../model/arguments.ts'
import { parseLenient } from '../model/lenient-json.ts'
import { NO_PROGRESS } from '../history/no-progress.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import type { NormalizedToolRequest } from '../tools/tool.ts'

/**
 * A call as it arrives. The arguments sit under one of four names, as an object, as JSON text, or
 * not at all.
 */
export interface RawToolCall {
  id: string
  name: string
  args?: unknown
  parameters?: unknown
  input?: unknown
  arguments?: unknown
  /** Set by the model client when the arguments must not be used. */
  invalid?: 'truncated' | 'malformed' | 'not_object'
  /** Set by the loop when the call only goes round in a circle. */
  noProgress?: boolean
}

/** A call that cannot run. `message` is for the model. */
interface RefusedToolRequest {
  callId: string
  name: string
  refusal: {
    reason: Extract<FailureReason, 'invalid_arguments' | 'unknown_tool' | 'no_progress'>
    message: string
  }
}

export type AdaptedToolRequest = NormalizedToolRequest | RefusedToolRequest

export function isRefused(request: AdaptedToolRequest): request is RefusedToolRequest {
  return 'refusal' in request
}

/** Every call in one shape, or refused. */
export class ToolRequestAdapter {
  readonly #registry: Pick<ToolRegistry, 'getTool' | 'listTools'>

  constructor(registry: Pick<ToolRegistry, 'getTool' | 'listTools'>) {
    this.#registry = registry
  }

  /** One request or refusal per call, in the order of `calls`. */
  normalizeBatch(calls: readonly RawToolCall[]): AdaptedToolRequest[] {
    return calls.map((call) => this.normalize(call))
  }

  normalize(call: RawToolCall): AdaptedToolRequest {
    const request = { callId: call.id, name: call.name }
    // First: that there is no such tool has been said before, and did not help.
    if (call.noProgress === true)
      return { ...request, refusal: { reason: 'no_progress', message: NO_PROGRESS } }
    const tool = this.#registry.getTool(call.name)
    if (tool === undefined) {
      const names = this.#registry.listTools().map((tool) => tool.name)
      return { ...request, refusal: { reason: 'unknown_tool', message: unknownToolText(call.name, names) } }
    }
    const raw = rawArguments(call)
    const args = call.invalid === undefined ? readArguments(raw) : { problem: invalidText(call.invalid, raw) }
    if ('problem' in args) {
      const message = `${args.problem} Nothing was run.`
      return { ...request, refusal: { reason: 'invalid_arguments', message } }
    }
    return { callId: call.id, name: tool.name, args: args.args }
  }
}

const INVALID_TEXT = {
  truncated:
    'The call was cut off before its arguments were complete, most likely because the answer reached its length limit. ' +
    'Split the work into several smaller calls (for example write a long file in parts).',
  malformed:
    'The arguments are not valid JSON. Send one JSON object, with quotes and line breaks inside strings escaped.',
  not_object: 'The arguments are not a JSON object. Send one object whose members are the arguments.',
} as const

/** The arguments as they came, from whichever of the four names has them. */
export function rawArguments(call: RawToolCall): unknown {
  return call.args ?? call.parameters ?? call.input ?? call.arguments
}

function readArguments(raw: unknown): { args: Record<string, unknown> } | { problem: string } {
  if (raw === undefined || raw === null) return { args: {} }
  if (typeof raw !== 'string') return objectOf(raw)
  if (raw.trim() === '') return { args: {} }
  // Decoded once: text inside the text is the model's mistake, not ours to guess at.
  const decoded = parseLenient(raw)
  if (!decoded.ok) return { problem: `${INVALID_TEXT.malformed} ${decoded.problem}` }
  return decoded.value === null ? { args: {} } : objectOf(decoded.value)
}

/**
 * Where the arguments of a refused call are wrong is read from their text again: the log keeps that
 * text alone.
 */
function invalidText(invalid: NonNullable<RawToolCall['invalid']>, raw: unknown): string {
  const problem = invalid === 'malformed' && typeof raw === 'string' ? argumentsProblem(raw) : undefined
  return problem === undefined ? INVALID_TEXT[invalid] : `${INVALID_TEXT[invalid]} ${problem}`
}

function objectOf(value: unknown): { args: Record<string, unknown> } | { problem: string } {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return { args: value as Record<string, unknown> }
  }
  const what = Array.isArray(value) ? 'an array' : `a ${typeof value}`
  return { problem: `${INVALID_TEXT.not_object} It was ${what}.` }
}

/** Models also prefix a known name (`functions.read_file`), so the last part is tried as well. */
function unknownToolText(name: string, names: readonly string[]): string {
  const shown = name.slice(0, 100)
  const meant = nearest(shown, names) ?? nearest(shown.split(/[.:/]/).at(-1) ?? '', names)
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`
  const list = names.length === 0 ? 'There are no tools now.' : `The tools are: ${names.join(', ')}.`
  return `There is no tool named ${JSON.stringify(shown)}.${hint} ${list}`
}
