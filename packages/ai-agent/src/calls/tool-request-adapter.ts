/**
 * The entry of the scheduler: whatever a model (or a client) sends as a call becomes one shape, or
 * a refusal that says what is wrong. Nothing behind this file looks at a raw call.
 */
import { nearest } from '@sandlot/shared/config/names'
import type { FailureReason } from '@sandlot/shared/chat/reasons'
import { argumentsProblem, kindProblem, readWholeArguments } from '../model/arguments.ts'
import { toolNamed } from '../model/call-names.ts'
import { isObject } from '../model/json.ts'
import { NO_PROGRESS } from '../history/no-progress.ts'
import { resolveAliases, type WrittenNames } from '../tools/argument-aliases.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import { type NormalizedToolRequest, type Tool, idOf } from '../tools/tool.ts'

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
  /** Under their true names where they could be read; otherwise as they came. */
  args: unknown
  refusal: {
    reason: Extract<FailureReason, 'invalid_arguments' | 'unknown_tool' | 'no_progress'>
    message: string
  }
}

/** `written`: the aliases of arguments that the model wrote. */
export type AdaptedToolRequest = (NormalizedToolRequest | RefusedToolRequest) & { written?: WrittenNames }

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
    const tool = this.#toolOf(call.name)
    const raw = rawArguments(call)
    const read = call.invalid === undefined ? argumentsOf(raw) : { problem: invalidText(call.invalid, raw) }
    const named = tool === undefined || 'problem' in read ? read : resolveAliases(tool.input, read.args)
    const name = tool?.name ?? call.name
    const asked = { callId: call.id, name, ...('problem' in named ? { args: raw ?? {} } : named) }
    // First: that there is no such tool has been said before, and did not help.
    if (call.noProgress === true)
      return { ...asked, refusal: { reason: 'no_progress', message: NO_PROGRESS } }
    if (tool === undefined) {
      const names = this.#registry.listTools().map((tool) => tool.name)
      return { ...asked, refusal: { reason: 'unknown_tool', message: unknownToolText(call.name, names) } }
    }
    if ('problem' in named) {
      const message = `${named.problem} Nothing was run.`
      return { ...asked, refusal: { reason: 'invalid_arguments', message } }
    }
    return { callId: call.id, name, ...named }
  }

  /** Most names are exact, which costs no look at the others. */
  #toolOf(name: string): Tool | undefined {
    const exact = this.#registry.getTool(name)
    if (exact !== undefined) return exact
    const tools = this.#registry.listTools().map((tool) => ({ name: tool.name, id: idOf(tool), tool }))
    return toolNamed(name, tools)?.tool
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
function rawArguments(call: RawToolCall): unknown {
  return call.args ?? call.parameters ?? call.input ?? call.arguments
}

function argumentsOf(raw: unknown): { args: Record<string, unknown> } | { problem: string } {
  if (raw === undefined || raw === null) return { args: {} }
  const read = typeof raw === 'string' ? readWholeArguments(raw) : undefined
  if (read?.invalid !== undefined) return { problem: invalidText(read.invalid, raw) }
  const args = read === undefined ? raw : read.args
  return isObject(args) ? { args } : { problem: `${INVALID_TEXT.not_object} ${kindProblem(args)}` }
}

/**
 * The error in a refused call's arguments is read from their text again: the log stores that text
 * alone.
 */
function invalidText(invalid: NonNullable<RawToolCall['invalid']>, raw: unknown): string {
  const problem = invalid !== 'truncated' && typeof raw === 'string' ? argumentsProblem(raw) : undefined
  return problem === undefined ? INVALID_TEXT[invalid] : `${INVALID_TEXT[invalid]} ${problem}`
}

/** The last part of a name (`functions.read_fil`) is tried as well. */
function unknownToolText(name: string, names: readonly string[]): string {
  const shown = name.slice(0, 100)
  const meant = nearest(shown, names) ?? nearest(shown.split(/[.:/]/).at(-1) ?? '', names)
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`
  const list = names.length === 0 ? 'There are no tools now.' : `The tools are: ${names.join(', ')}.`
  return `There is no tool named ${JSON.stringify(shown)}.${hint} ${list}`
}
