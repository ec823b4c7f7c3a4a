/** The figures of all tools, for administrators. */
import type { ToolLine, ToolStatsView } from '@sandlot/shared/admin/tool-stats'
import type { ToolMetrics } from './tool-metrics.ts'

interface ToolsToList {
  metrics: ToolMetrics
  /** Ids of the agent's own tools, by whether everybody has them. */
  builtin: ReadonlyMap<string, 'on' | 'off'>
  /** Epoch milliseconds: when counting began. */
  since: number
}

/** Also of tools that were never called; of MCP servers those that were. By id. */
export function toolStatsView({ metrics, builtin, since }: ToolsToList): ToolStatsView {
  const ids = [...new Set([...builtin.keys(), ...metrics.tools()])].toSorted()
  return {
    since,
    tools: ids.map((id): ToolLine => {
      const { count, successRate, p50Ms, p95Ms, truncationRate, sizes } = metrics.getStats(id)
      return {
        id,
        source: id.includes('::') ? id.slice(0, id.indexOf('::')) : 'built-in',
        offered: builtin.get(id) ?? 'unknown',
        calls: count,
        successRate,
        p50Ms,
        p95Ms,
        truncationRate,
        outputBytes: sizes.sum,
      }
    }),
  }
}
