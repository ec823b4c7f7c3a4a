/** docs/tools.md: the reference of the built-in tools, generated from their definitions. */
import { builtinTools } from '../packages/ai-agent/src/tools/builtin/index.ts'
import { dataSchema, toolParameters } from '../packages/ai-agent/src/tools/tool-schema.ts'
import type { Tool } from '../packages/ai-agent/src/tools/tool.ts'

const OPENING = `# The built-in tools

<!-- Written by test/write-docs.ts from packages/ai-agent/src/tools/builtin. -->

The agent’s tools in a person’s sandbox. \`./sandlot tools\` lists these and those of MCP servers, and which are offered here. To write one, see
[adding a tool](add-a-tool.md). Reads run together without approval; changes run one at a time, in order, judged by [the rules](approvals.md). *Without
approval* means: it can only change what was already allowed.

All are on by default. \`SANDLOT_TOOLS_ENABLED\` and the section \`tools\` of [the configuration file](settings.md#the-configuration-file) restrict them; settings of a
[person or a team](people.md) override these:

    {
      "tools": {
        "echo": { "enabled": false },
        "search_text": { "timeoutMs": 60000, "concurrency": 4, "rateLimit": { "calls": 30, "perMs": 60000 } },
        "weather::forecast": { "cacheTtlMs": 60000 }
      }
    }

A time limit is 1 to 300 seconds; then the tool is cancelled, and two seconds later the call ends whatever the tool does.
`

/** The whole page. */
export function toolReference(): string {
  return [OPENING, ...builtinTools().map(sectionOf)].join('\n')
}

function sectionOf(tool: Tool): string {
  const facts = [
    tool.readOnly
      ? 'reads only'
      : `may change something${tool.runs?.needsApproval === false ? ', without approval' : ''}`,
    `kind \`${tool.kind}\``,
    tool.runs?.timeoutMs === undefined
      ? 'time limit as configured or requested'
      : `time limit ${tool.runs.timeoutMs / 1000} s`,
  ]
  const { properties = {}, required = [] } = toolParameters(tool.input) as {
    properties?: Record<string, Record<string, unknown>>
    required?: string[]
  }
  const rows = Object.entries(properties).map(([name, schema]) => {
    const optional = required.includes(name) ? '' : ', optional'
    return `- \`${name}\` (${typeOf(schema)}${optional}): ${textOf(schema['description'])}`
  })
  return [
    `## ${tool.name}`,
    '',
    tool.description,
    '',
    `${capitalised(facts.join(', '))}.${dataOf(tool)}`,
    '',
    ...rows,
    '',
  ].join('\n')
}

/** Names of the data that a completed call has for the screen; `?` marks optional ones. */
function dataOf({ output }: Tool): string {
  if (output === undefined) return ''
  const shape = namesOf(dataSchema(output))
  return ` Data${output.isOptional() ? ', if any' : ''}: \`${shape}\`.`
}

function namesOf(schema: JsonSchema): string {
  if (schema.anyOf !== undefined) return schema.anyOf.map(namesOf).join('` or `')
  const names = Object.entries(schema.properties ?? {}).map(([name, inner]) => {
    const mark = schema.required?.includes(name) === true ? '' : '?'
    return `${name}${mark}${inner.properties === undefined ? '' : `: ${namesOf(inner)}`}`
  })
  return `{ ${names.join(', ')} }`
}

interface JsonSchema {
  anyOf?: JsonSchema[]
  properties?: Record<string, JsonSchema>
  required?: string[]
}

function typeOf(schema: Record<string, unknown>): string {
  const { type, minimum, maximum } = schema
  const among = schema['enum']
  if (Array.isArray(among)) return among.map((value) => `\`${String(value)}\``).join(', ')
  const fallback = schema['default']
  const range = type === 'integer' && typeof minimum === 'number' ? ` ${rangeOf(minimum, maximum)}` : ''
  const given = fallback === undefined || fallback === '' ? '' : `, default \`${JSON.stringify(fallback)}\``
  return `${textOf(type) || 'any'}${range}${given}`
}

function rangeOf(minimum: number, maximum: unknown): string {
  return typeof maximum === 'number' && maximum < Number.MAX_SAFE_INTEGER
    ? `${minimum}–${maximum}`
    : `from ${minimum}`
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
