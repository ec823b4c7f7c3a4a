/** The section `tools` of the configuration file: what an operator changes about single tools. */
import { z } from 'zod'
import type { Tool } from '../tools/tool.ts'

const toolSettings = z.strictObject({
  /** False: nobody is offered it. */
  enabled: z.boolean().optional(),
  timeoutMs: z.int().min(1000).max(300_000).optional(),
  /** So many calls of one user in so many milliseconds. */
  rateLimit: z.strictObject({ calls: z.int().min(1), perMs: z.int().min(1) }).optional(),
  /** How long a result may be given again, for tools that allow it; 0: never. */
  cacheTtlMs: z.int().min(0).optional(),
  /** Calls that run at once, of everybody together. */
  concurrency: z.int().min(1).max(1000).optional(),
})

/** By tool id: `run_shell_command`, `server::tool`. */
export const toolsSection = z.record(z.string().min(1).max(256), toolSettings)
export type ToolsSection = z.output<typeof toolsSection>

/** The tool as the operator wants it. */
export function configuredTool(tool: Tool, section: ToolsSection): Tool {
  const settings = Object.hasOwn(section, tool.id) ? section[tool.id] : undefined
  if (settings === undefined) return tool
  const { timeoutMs, rateLimit, cacheTtlMs, concurrency } = settings
  const changed: Tool = {
    ...tool,
    timeoutMs: timeoutMs ?? tool.timeoutMs,
    rateLimit: rateLimit ?? tool.rateLimit,
    concurrency: concurrency ?? tool.concurrency,
    // A tool whose results may change between two calls says so itself; nobody can configure that away.
    ...(cacheTtlMs === undefined || tool.cache === undefined
      ? {}
      : { cache: { ...tool.cache, ttlMs: cacheTtlMs } }),
  }
  if (cacheTtlMs === 0) delete changed.cache
  return changed
}
