/** The tools for an operator to look at: what `./sandlot tools` shows, and the reference page. */
import type { ToolKind } from '@sandlot/shared/chat/call'
import { type Tool, idOf } from '../tools/tool.ts'
import { toolParameters } from '../tools/tool-schema.ts'

interface ListedTool {
  id: string
  /** The name that the model uses. */
  name: string
  /** `built-in`, or the name of the MCP server. */
  source: string
  kind: ToolKind
  readOnly: boolean
  /** Absent: the configured default. */
  timeoutMs?: number
  available: boolean
  description: string
  /** JSON Schema of the arguments. */
  schema: Record<string, unknown>
}

/** An MCP server and how it stands. */
interface ListedServer {
  name: string
  state: string
  why?: string
}

export interface ToolListing {
  /** True if an agent was running, which alone knows about MCP servers. */
  running: boolean
  tools: ListedTool[]
  servers: ListedServer[]
}

/** Those that were not started. */
export function unknownServers(
  config: { mcpServers: readonly { name: string }[] },
  why: string,
): ListedServer[] {
  return config.mcpServers.map(({ name }) => ({ name, state: 'unknown', why }))
}

export function unavailableServers(config: {
  unavailableServers: readonly { name: string; why: string }[]
}): ListedServer[] {
  return config.unavailableServers.map(({ name, why }) => ({ name, state: 'unavailable', why }))
}

/** `offered`: what everybody is offered of `all`; the rest is listed as not available. */
export function listedTools(all: readonly Tool[], offered: readonly Tool[]): ListedTool[] {
  const byId = new Map(offered.map((tool) => [idOf(tool), tool]))
  return all.map((tool) => {
    const id = idOf(tool)
    const { name, kind, readOnly, runs, description, input } = byId.get(id) ?? tool
    const source = id.includes('::') ? (id.split('::')[0] ?? '') : 'built-in'
    return {
      id,
      name,
      source,
      kind,
      readOnly,
      timeoutMs: runs?.timeoutMs,
      available: byId.has(id),
      description,
      schema: toolParameters(input),
    }
  })
}
