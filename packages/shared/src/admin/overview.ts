/** State of the whole Sandlot for administrators (`/api/admin/overview`). */
import { z } from 'zod'
import { readiness } from '../account/api.ts'
import { queueWait } from '../chat/queue-wait.ts'

/**
 * A running or queued prompt. Its content is private: no title, no text, and the session id only
 * for its owner.
 */
const runningPrompt = z.object({
  promptId: z.string(),
  /** Id of the user it counts for. */
  person: z.string(),
  model: z.string(),
  /** Epoch milliseconds. */
  startedAt: z.number(),
  /** Requesting the model, running calls, waiting for a person, or queued. */
  doing: z.enum(['model', 'calls', 'person', 'line']),
  /** Tools of the calls that run or wait for a person. */
  tools: z.array(z.string()),
  /** With `line`. */
  line: queueWait.optional(),
  /** Only of the reader's own. */
  sessionId: z.string().optional(),
  title: z.string().nullable().optional(),
})
export type RunningPrompt = z.infer<typeof runningPrompt>

/** The agent's part. */
export const agentOverview = z.object({
  version: z.string(),
  /** Oldest first; queued ones in the order of the queue. */
  prompts: z.array(runningPrompt),
  /** Limit of concurrent prompts; absent: none. */
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
  /** Free bytes in the data folder. */
  freeBytes: z.number().optional(),
})
export type AgentOverview = z.infer<typeof agentOverview>

export const overview = agentOverview.partial().extend({
  /** The result of `/readyz`. */
  health: readiness,
  node: z.string(),
  /** Users with an open page. */
  online: z.array(z.object({ id: z.string(), name: z.string() })),
  /** Names by user id. */
  names: z.record(z.string(), z.string()),
})
export type Overview = z.infer<typeof overview>
