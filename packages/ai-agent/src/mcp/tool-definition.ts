/**
 * Validates a server's list of tools one tool at a time: a malformed one does not affect the
 * others.
 */
import { z } from 'zod'
import { modelSchema } from './model-schema.ts'
import { visibleText } from './visible-text.ts'
import { isObject } from '../model/json.ts'

const MAX_NAME_CHARS = 256
/** Every request contains it. */
const MAX_DESCRIPTION_CHARS = 4_000
const MAX_OUTPUT_SCHEMA_CHARS = 256 * 1024
/**
 * The limit for all tools of a server together: every request contains them, and one server must
 * not fill a model's context.
 */
const MAX_ALL_CHARS = 512 * 1024

const announced = z.object({
  name: z.string(),
  title: z.string().optional().catch(undefined),
  description: z.string().optional().catch(undefined),
  inputSchema: z.unknown(),
  outputSchema: z.record(z.string(), z.unknown()).optional().catch(undefined),
  annotations: z
    .object({
      title: z.string().optional().catch(undefined),
      readOnlyHint: z.boolean().optional().catch(undefined),
    })
    .optional()
    .catch(undefined),
})

/** One tool of a server, valid to be offered. */
export interface ToolDefinition {
  /** The server's own name for it. */
  name: string
  /** For users. */
  title: string
  description: string
  /** The schema for the model. */
  parameters: Record<string, unknown>
  /** The schema for validating arguments, as the server wrote it. */
  inputSchema: Record<string, unknown>
  outputSchema?: Record<string, unknown>
  /** The server's annotation that it changes nothing. */
  announcedReadOnly: boolean
}

export interface ReadTools {
  tools: ToolDefinition[]
  /** A line for each tool that cannot be offered, with its name. */
  problems: string[]
}

/**
 * The tools sorted by name. `wanted`: only these; undefined: all. `withHeaders`: parameters go into
 * HTTP headers where a tool declares it.
 */
export function readToolDefinitions(
  list: readonly unknown[],
  wanted: readonly string[] | undefined,
  withHeaders = false,
): ReadTools {
  const tools = new Map<string, ToolDefinition>()
  const problems: string[] = []
  const twice = new Set<string>()
  for (const [index, one] of list.entries()) {
    const read = readOne(one, index, withHeaders)
    if ('problem' in read) problems.push(read.problem)
    else if (wanted !== undefined && !wanted.includes(read.tool.name)) continue
    else if (tools.has(read.tool.name)) twice.add(read.tool.name)
    else tools.set(read.tool.name, read.tool)
  }
  // It is ambiguous which of the two is meant.
  for (const name of twice) {
    tools.delete(name)
    problems.push(`${shown(name)}: it is announced twice`)
  }
  for (const name of wanted ?? []) {
    if (!tools.has(name) && !twice.has(name))
      problems.push(`${shown(name)}: it is in the list of tools, but the server has no such tool`)
  }
  const sorted = [...tools.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return { tools: fitting(sorted, problems), problems }
}

function fitting(tools: readonly ToolDefinition[], problems: string[]): ToolDefinition[] {
  let chars = 0
  return tools.filter(({ name, description, parameters }) => {
    const own = name.length + description.length + JSON.stringify(parameters).length
    if (chars + own > MAX_ALL_CHARS) {
      problems.push(
        `${shown(name)}: the tools of this server have more than ${MAX_ALL_CHARS} characters together; name those that are wanted under tools`,
      )
      return false
    }
    chars += own
    return true
  })
}

function readOne(
  one: unknown,
  index: number,
  withHeaders: boolean,
): { tool: ToolDefinition } | { problem: string } {
  const read = announced.safeParse(one)
  if (!read.success) return { problem: `tool number ${index + 1}: it has no name` }
  const { name, title, description, inputSchema, outputSchema, annotations } = read.data
  const label = shown(name)
  if (name.trim() === '' || name.length > MAX_NAME_CHARS || /\p{C}/u.test(name))
    return {
      problem: `${label}: its name is empty, longer than ${MAX_NAME_CHARS} characters, or has control characters`,
    }
  const schema = modelSchema(inputSchema)
  if ('problem' in schema) return { problem: `${label}: ${schema.problem}` }
  const headers = withHeaders ? parameterHeaderProblem(inputSchema as Record<string, unknown>) : undefined
  if (headers !== undefined) return { problem: `${label}: ${headers}` }
  const said = visibleText(description ?? '').trim()
  const tool: ToolDefinition = {
    name,
    title: visibleText(title ?? annotations?.title ?? name).slice(0, 200),
    description: cutText(said === '' ? `The tool ${name}.` : said, MAX_DESCRIPTION_CHARS),
    parameters: schema.parameters,
    inputSchema: inputSchema as Record<string, unknown>,
    announcedReadOnly: annotations?.readOnlyHint === true,
  }
  if (outputSchema === undefined) return { tool }
  if (JSON.stringify(outputSchema).length > MAX_OUTPUT_SCHEMA_CHARS)
    return { problem: `${label}: its output schema is too large` }
  return { tool: { ...tool, outputSchema } }
}

function cutText(text: string, chars: number): string {
  return text.length <= chars ? text : `${text.slice(0, chars - 2).toWellFormed()} …`
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 80))
}

const KEYWORD = 'x-mcp-header'
/** RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TYPES: readonly unknown[] = ['string', 'integer', 'boolean']
/** Keywords whose values are data, not schemas. */
const DATA = new Set(['const', 'default', 'enum', 'examples', 'required'])

/**
 * Why the `x-mcp-header` declarations of `schema` are invalid (MCP 2026-07-28, Streamable HTTP,
 * "Custom headers"); undefined when they are valid. The SDK checks this in `listTools` only.
 */
function parameterHeaderProblem(schema: Record<string, unknown>): string | undefined {
  const names = new Set<string>()
  // `reachable`: by `properties` alone, as a value is found in the arguments.
  const visit = (node: unknown, reachable: boolean): string | undefined => {
    if (Array.isArray(node)) return firstProblem(node, (item) => visit(item, false))
    if (!isObject(node)) return undefined
    const { properties, [KEYWORD]: name, ...rest } = node
    if (KEYWORD in node) {
      const problem =
        reachable && node !== schema
          ? nameProblem(name, node['type'], names)
          : 'it stands where no parameter is'
      if (problem !== undefined) return problem
    }
    const below = isObject(properties) ? Object.values(properties) : []
    const others = Object.entries(rest).flatMap(([keyword, value]) => (DATA.has(keyword) ? [] : [value]))
    return (
      firstProblem(below, (child) => visit(child, reachable)) ??
      firstProblem(others, (value) => visit(value, false))
    )
  }
  const problem = visit(schema, true)
  return problem === undefined ? undefined : `its ${KEYWORD} is not valid: ${problem}`
}

function nameProblem(name: unknown, type: unknown, names: Set<string>): string | undefined {
  if (typeof name !== 'string' || !TOKEN.test(name)) return 'it is not the name of a header'
  if (!TYPES.includes(type)) return 'the parameter is no string, integer or boolean'
  if (names.has(name.toLowerCase())) return 'two parameters have the same'
  names.add(name.toLowerCase())
  return undefined
}

function firstProblem<T>(items: readonly T[], check: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const problem = check(item)
    if (problem !== undefined) return problem
  }
  return undefined
}
