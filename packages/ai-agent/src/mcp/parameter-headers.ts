/**
 * `x-mcp-header` in a tool's input schema: the server wants the value of that parameter in an HTTP header as well. A tool
 * that declares one wrongly must not be offered (MCP 2026-07-28, Streamable HTTP, "Custom headers"). The SDK checks this in
 * `listTools` only, which fails for the whole list when one tool is malformed.
 */
import { isObject } from '../model/json.ts'

const KEYWORD = 'x-mcp-header'
/** RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TYPES: readonly unknown[] = ['string', 'integer', 'boolean']
/** Their values are data, not schemas. */
const DATA = new Set(['const', 'default', 'enum', 'examples', 'required'])

/** Why the declarations of `schema` are not valid; undefined when they are, or when there are none. */
export function parameterHeaderProblem(schema: Record<string, unknown>): string | undefined {
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

function firstProblem<T>(items: readonly T[], look: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const problem = look(item)
    if (problem !== undefined) return problem
  }
  return undefined
}
