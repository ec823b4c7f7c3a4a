import type { ClientServers } from '../acp/editor/client-servers.ts'
import type { PromptQueue } from '../limits/prompt-queue.ts'
import type { Mcp } from '../mcp/open-mcp.ts'
import type { AgentMetrics } from '../metrics/agent-metrics.ts'
import type { ToolMetrics } from '../metrics/tool-metrics.ts'
import type { Tracing } from '../metrics/tracing.ts'
import type { SessionManager } from '../session/manager.ts'
import type { CallParts } from '../session/parts.ts'
import type { Retention } from '../session/retention.ts'
import type { Tool } from '../tools/tool.ts'
import type { AgentStores } from './stores.ts'
import type { PersonSandboxes } from './person-sandboxes.ts'

/** The parts of an agent that runs: for what serves it, and for what ends it. */
export interface Running {
  stores: AgentStores
  sandboxes: PersonSandboxes
  /** Tools of our own. */
  builtin: readonly Tool[]
  mcp: Mcp
  clientServers: ClientServers
  runCalls: CallParts['runCalls']
  externalAccess: CallParts['externalAccess']
  metrics: { tools: ToolMetrics; prompts: AgentMetrics; tracing: Tracing | undefined }
  promptQueue: PromptQueue
  manager: SessionManager
  retention: Retention
  leaving: AbortController
}
