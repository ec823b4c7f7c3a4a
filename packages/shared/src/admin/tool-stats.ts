/** Statistics of the agent's tools: `GET /api/admin/tools`, for administrators. */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'

const toolLine = z.object({
  /** `run_shell_command`, `flights-mcp::search-flights`. */
  id: z.string(),
  /** `built-in`, or the MCP server's name. */
  source: z.string(),
  /** Default availability by configuration; `unknown`: a server's tool, or removed. */
  offered: z.enum(['on', 'off', 'unknown']),
  calls: z.number(),
  /** 0–1; rates and times are absent without calls. */
  successRate: z.number(),
  p50Ms: z.number(),
  p95Ms: z.number(),
  truncationRate: z.number(),
  outputBytes: z.number(),
})
export type ToolLine = z.infer<typeof toolLine>

export const toolStatsView = z.object({
  /** Epoch milliseconds of the agent's start. */
  since: z.number(),
  /** Built-in ones, and those called since. By id. */
  tools: z.array(toolLine),
})
export type ToolStatsView = z.infer<typeof toolStatsView>

/** `EXT.toolStats`: answered with a `ToolStatsView`. */
export const toolStatsParams = z.object({ user: agentUser })
