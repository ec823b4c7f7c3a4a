/** How the agent's tools do: `GET /api/admin/tools`, for administrators. */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'

const toolLine = z.object({
  /** `run_shell_command`, `flights-mcp::search-flights`. */
  id: z.string(),
  /** `built-in`, or the name of the MCP server. */
  source: z.string(),
  /** Whether everybody has it, as the configuration says; `unknown`: of a server, or gone. */
  offered: z.enum(['on', 'off', 'unknown']),
  calls: z.number(),
  /** 0–1; of rates and times there are none without calls. */
  successRate: z.number(),
  p50Ms: z.number(),
  p95Ms: z.number(),
  truncationRate: z.number(),
  outputBytes: z.number(),
})
export type ToolLine = z.infer<typeof toolLine>

export const toolStatsView = z.object({
  /** Epoch milliseconds: when the agent started to count. */
  since: z.number(),
  /** Built-in ones, and those that were called since. By id. */
  tools: z.array(toolLine),
})
export type ToolStatsView = z.infer<typeof toolStatsView>

/** `EXT.toolStats`: answered with a `ToolStatsView`. */
export const toolStatsParams = z.object({ user: agentUser })
