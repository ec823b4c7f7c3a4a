/** What administrators see of the whole Sandlot (`/api/admin/overview`). */
import { z } from 'zod'
import { readiness } from '../account/api.ts'
import { queueWait } from '../chat/queue-wait.ts'

/**
 * A prompt that runs or waits. What it is about is its people’s: no title, no text, and its
 * session only to whom it belongs.
 */
const runningPrompt = z.object({
  promptId: z.string(),
  /** User id of whom it counts for. */
  person: z.string(),
  model: z.string(),
  /** Epoch milliseconds. */
  startedAt: z.number(),
  /** Asking the model, running calls, waiting for a person, or for its turn. */
  doing: z.enum(['model', 'calls', 'person', 'line']),
  /** Names of the tools whose calls run, or wait for a person. */
  tools: z.array(z.string()),
  /** With `line`. */
  line: queueWait.optional(),
  /** Only of one's own. */
  sessionId: z.string().optional(),
  title: z.string().nullable().optional(),
})
export type RunningPrompt = z.infer<typeof runningPrompt>

/** What the agent says of itself. */
export const agentOverview = z.object({
  version: z.string(),
  /** The oldest first; those in line in its order. */
  prompts: z.array(runningPrompt),
  /** Prompts that may run at once; absent: no limit. */
  promptLimit: z.number().optional(),
  sandboxes: z.object({
    /** Running and paused ones; absent: the engine does not answer. */
    running: z.number().optional(),
    limit: z.number().optional(),
    memoryLimitMb: z.number().optional(),
    image: z.string(),
    /** Name and version. */
    engine: z.string().optional(),
  }),
  /** Free bytes where Sandlot keeps its data. */
  freeBytes: z.number().optional(),
})
export type AgentOverview = z.infer<typeof agentOverview>

export const overview = agentOverview.partial().extend({
  /** As `/readyz` says. */
  health: readiness,
  node: z.string(),
  /** With the page open. */
  online: z.array(z.object({ id: z.string(), name: z.string() })),
  /** Names by user id, of those in it. */
  names: z.record(z.string(), z.string()),
})
export type Overview = z.infer<typeof overview>
