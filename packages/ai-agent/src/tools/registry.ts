/** The tools there are, found by id or by the name that the model uses. */
import { toolKind } from '@sandlot/shared/chat/call'
import { z } from 'zod'
import type { ModelTool } from '../model/model.ts'
import { type Tool, idOf } from './tool.ts'
import { isZodInput, toolParameters, type ToolInput } from './tool-schema.ts'

export interface ToolRegistry {
  /** Adds all or none. @throws ToolDefinitionError that lists every problem. */
  register(...tools: readonly Tool[]): void
  /** By id. False when there was none. */
  unregister(id: string): boolean
  /** By id, or by the model's name. */
  getTool(idOrName: string): Tool | undefined
  has(idOrName: string): boolean
  /** Sorted by name. */
  listTools(): readonly Tool[]
  /** Tools of a request to the model: sorted by name, the same bytes each time. */
  modelTools(): readonly ModelTool[]
  /** Servers some of whose tools are not here, because there were too many. Absent: none. */
  readonly leftOut?: readonly string[]
}

/** A tool that cannot be registered. The message names every tool and every problem. */
export class ToolDefinitionError extends Error {
  override readonly name = 'ToolDefinitionError'
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(`These tools cannot be registered:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`)
    this.problems = problems
  }
}

const MODEL_NAME = /^[A-Za-z0-9_-]{1,64}$/
/** A server names its tools as it likes, but for what would break a line of the log. */
const TOOL_ID = /^[^\s:]+(::[^\p{C}]+)?$/u

/**
 * Every problem of these definitions, each beginning with the tool's id; an empty list when they
 * are good.
 */
export function validateToolDefinitions(tools: readonly Tool[]): string[] {
  const problems = tools.flatMap((tool, index) => {
    const id: unknown = idOf(tool)
    const label = typeof id === 'string' && id !== '' ? id : `tool number ${index + 1}`
    return problemsOf(tool).map((problem) => `${label}: ${problem}`)
  })
  return [
    ...problems,
    ...repeated(tools.map(idOf), 'id'),
    ...repeated(
      tools.map(({ name }) => name),
      'name',
    ),
  ]
}

function problemsOf(tool: Tool): string[] {
  const problems: string[] = []
  const check = (good: boolean, problem: string): void => {
    if (!good) problems.push(problem)
  }
  check(TOOL_ID.test(idOf(tool)), 'its id must be a name, or server::tool')
  check(
    MODEL_NAME.test(tool.name),
    `its name must be 1–64 of A–Z a–z 0–9 _ -, not ${JSON.stringify(tool.name)}`,
  )
  check(typeof tool.description === 'string' && tool.description.trim() !== '', 'it has no description')
  check(
    toolKind.safeParse(tool.kind).success,
    `its kind ${JSON.stringify(tool.kind)} is not one of ${toolKind.options.join(', ')}`,
  )
  check(typeof tool.readOnly === 'boolean', 'it does not say whether it is read-only')
  check(typeof tool.title === 'function', 'it has no title function')
  check(typeof tool.execute === 'function', 'it has no execute function')
  check(tool.runs?.cache === undefined || tool.readOnly, 'only a read-only tool can have its results cached')
  const { calls = 1, perMs = 1 } = tool.runs?.rateLimit ?? {}
  check(calls >= 1 && perMs >= 1, 'its rateLimit must allow at least one call in at least one millisecond')
  check(tool.output === undefined || tool.output instanceof z.ZodType, 'its output is not a zod schema')
  const timeout = tool.runs?.timeoutMs ?? 1000
  check(timeout >= 1000 && timeout <= 300_000, 'its timeoutMs must be 1000–300000')
  if (!isZodInput(tool.input) && typeof tool.input?.check !== 'function')
    return [...problems, 'its input is neither a zod object nor a JSON Schema with its check']
  return [...problems, ...problemsOfInput(tool.input)]
}

function problemsOfInput(input: ToolInput): string[] {
  let parameters: Record<string, unknown>
  try {
    parameters = toolParameters(input)
  } catch (error) {
    return [`its input has no JSON Schema: ${error instanceof Error ? error.message : String(error)}`]
  }
  if (parameters['type'] !== 'object') return ['its input is not an object']
  // Tools of others are left as they are: a model can call a tool whose arguments are not
  // described.
  if (!isZodInput(input)) return []
  const properties = Object.entries(
    (parameters['properties'] ?? {}) as Record<string, Record<string, unknown>>,
  )
  const typed = ['type', 'enum', 'const', 'anyOf', 'oneOf', 'allOf', '$ref']
  return [
    ...properties
      .filter(([, schema]) => !typed.some((key) => key in schema))
      .map(([name]) => `its argument ${name} has no type`),
    ...properties
      .filter(([, schema]) => !('description' in schema))
      .map(([name]) => `its argument ${name} has no description`),
  ]
}

function repeated(values: readonly string[], field: 'id' | 'name'): string[] {
  const seen = new Map<string, number>()
  for (const value of values) seen.set(value, (seen.get(value) ?? 0) + 1)
  return [...seen]
    .filter(([, times]) => times > 1)
    .map(([value, times]) => `${value}: ${times} tools have this ${field}`)
}

/**
 * An empty registry. Lookups are by hash, so they cost the same for ten tools and for a thousand.
 */
export function createRegistry(): ToolRegistry {
  const byId = new Map<string, Tool>()
  const byName = new Map<string, Tool>()
  let sorted: readonly Tool[] | undefined
  let forModel: readonly ModelTool[] | undefined

  const changed = (): void => {
    sorted = undefined
    forModel = undefined
  }
  const getTool = (idOrName: string): Tool | undefined => byId.get(idOrName) ?? byName.get(idOrName)
  const listTools = (): readonly Tool[] =>
    (sorted ??= [...byId.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1)))

  /** Registered tools were validated then: only new ones are checked, however many there are. */
  const taken = (tools: readonly Tool[]): string[] =>
    tools.flatMap((tool) => [
      ...(byId.has(idOf(tool)) ? [`${idOf(tool)}: 2 tools have this id`] : []),
      ...(byName.has(tool.name) ? [`${tool.name}: 2 tools have this name`] : []),
    ])

  return {
    register(...tools) {
      const problems = [...validateToolDefinitions(tools), ...taken(tools)]
      if (problems.length > 0) throw new ToolDefinitionError(problems)
      for (const tool of tools) {
        byId.set(idOf(tool), tool)
        byName.set(tool.name, tool)
      }
      changed()
    },
    unregister(id) {
      const tool = byId.get(id)
      if (tool === undefined) return false
      byId.delete(id)
      byName.delete(tool.name)
      changed()
      return true
    },
    getTool,
    has: (idOrName) => getTool(idOrName) !== undefined,
    listTools,
    modelTools: () =>
      (forModel ??= listTools().map((tool) => ({
        name: tool.name,
        description: tool.description,
        parameters: toolParameters(tool.input),
      }))),
  }
}
