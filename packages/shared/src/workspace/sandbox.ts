/** A user's sandbox as a whole: `GET /api/sandbox` and its actions. */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'
import { author } from '../chat/shares.ts'

/** `limit` absent: none, or not known. */
const amount = z.object({ used: z.number(), limit: z.number().optional() })

/**
 * `none`: not created yet. `starting`: being created, started or connected. `resting`: paused while
 * idle; the next command wakes it. `stopped`: the next command starts it.
 */
export const sandboxState = z.enum(['none', 'starting', 'ready', 'resting', 'stopped'])

/** Current resource use. */
export const sandboxUse = z.object({
  /** Processor time since its start, in milliseconds. */
  cpuMs: z.number(),
  memory: amount,
  processes: amount,
  /** The workspace, in bytes. */
  disk: amount,
  /** /tmp and similar, in bytes of memory. */
  scratch: amount,
  /** Commands and terminals. */
  commands: z.number(),
})
export type SandboxUse = z.infer<typeof sandboxUse>

const startStep = z.enum(['line', 'slot', 'pool', 'container', 'hello', 'proof', 'network'])

/** `GET /api/sandbox` */
export const sandboxView = z.object({
  state: sandboxState,
  image: z.string(),
  /** Steps of the last or current start, in order; `about`: names and numbers. */
  steps: z.array(z.object({ at: z.number(), step: startStep, about: z.string() })).default([]),
  /** Limit of concurrent processors. */
  cpus: z.number(),
  /** Only in the state `ready`. */
  use: sandboxUse.optional(),
  /** External access. `ask`: the agent may ask for more hosts. */
  network: z.object({ mode: z.enum(['none', 'egress']), hosts: z.array(z.string()), ask: z.boolean() }),
  /** The user's own permissions in it. */
  allowed: z.object({ terminal: z.boolean(), exec: z.boolean() }),
})
export type SandboxView = z.infer<typeof sandboxView>

/** A background command's id. */
export const jobId = z.string().regex(/^[0-9a-f]{32}$/, 'a background command’s id is 32 hexadecimal digits')

const backgroundJob = z.object({
  id: jobId,
  /** Its first line. */
  line: z.string(),
  /** Epoch milliseconds. */
  startedAt: z.number(),
  /** The chat whose agent started it. */
  session: z.object({ id: z.string(), title: z.string().nullable() }),
  /** The requester, if not the chat's owner. */
  by: author.optional(),
})
export type BackgroundJob = z.infer<typeof backgroundJob>
/** `GET /api/sandbox/jobs`: background commands of all chats, oldest first. */
export const backgroundJobs = z.object({ jobs: z.array(backgroundJob) })
/** `GET /api/sandbox/jobs/:id/output`: the end of its output. */
export const jobOutput = z.object({ text: z.string() })

/** `EXT.sandbox`: answered with a `SandboxView`, `backgroundJobs`, a `jobOutput`, `{}`. */
export const sandboxParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('view') }),
    /** Ends every process and empties /tmp; the workspace stays. */
    z.object({ do: z.literal('reset') }),
    /** The same; the next command starts it again. */
    z.object({ do: z.literal('stop') }),
    z.object({ do: z.literal('jobs') }),
    z.object({ do: z.literal('output'), id: jobId }),
    /** Ends it with all its children. */
    z.object({ do: z.literal('end'), id: jobId }),
  ]),
})
