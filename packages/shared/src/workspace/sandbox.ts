/** A person's sandbox: `GET /api/sandbox` and what they do with it as a whole. */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'
import { author } from '../chat/shares.ts'

/** `limit` absent: none, or not known. */
const amount = z.object({ used: z.number(), limit: z.number().optional() })

/**
 * `none`: not made yet. `starting`: being made, started or connected to. `resting`: paused, as
 * nothing runs in it; the next command wakes it. `stopped`: the next command starts it again.
 */
export const sandboxState = z.enum(['none', 'starting', 'ready', 'resting', 'stopped'])

/** What one uses now. */
export const sandboxUse = z.object({
  /** Processor time since it started, in milliseconds. */
  cpuMs: z.number(),
  memory: amount,
  processes: amount,
  /** Of the workspace, in bytes. */
  disk: amount,
  /** /tmp and the like, in bytes: they are memory. */
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
  /** How it was made ready the last time, or is being, in order; `about`: names and numbers. */
  steps: z.array(z.object({ at: z.number(), step: startStep, about: z.string() })).default([]),
  /** How many processors it may use at once. */
  cpus: z.number(),
  /** Only of one that is `ready`. */
  use: sandboxUse.optional(),
  /** What it may reach. `ask`: the agent may ask for more hosts. */
  network: z.object({ mode: z.enum(['none', 'egress']), hosts: z.array(z.string()), ask: z.boolean() }),
  /** What the person may do in it themselves. */
  allowed: z.object({ terminal: z.boolean(), exec: z.boolean() }),
})
export type SandboxView = z.infer<typeof sandboxView>

/** Of a background command. */
const jobId = z.string().regex(/^[0-9a-f]{32}$/, 'a background command’s id is 32 hexadecimal digits')

const backgroundJob = z.object({
  id: jobId,
  /** Its first line. */
  line: z.string(),
  /** Epoch milliseconds. */
  startedAt: z.number(),
  /** The chat whose agent started it. */
  session: z.object({ id: z.string(), title: z.string().nullable() }),
  /** Who asked for it, where that is another person than the owner of the chat. */
  by: author.optional(),
})
export type BackgroundJob = z.infer<typeof backgroundJob>
/** `GET /api/sandbox/jobs`: what runs in the background, of all chats, oldest first. */
export const backgroundJobs = z.object({ jobs: z.array(backgroundJob) })
/** `GET /api/sandbox/jobs/:id/output`: the last of what it has printed. */
export const jobOutput = z.object({ text: z.string() })

/** `EXT.sandbox`: answered with a `SandboxView`, `backgroundJobs`, a `jobOutput`, `{}`. */
export const sandboxParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('view') }),
    /** Every process ends and /tmp is emptied; the workspace stays. */
    z.object({ do: z.literal('reset') }),
    /** The same, and it is started again by the next command. */
    z.object({ do: z.literal('stop') }),
    z.object({ do: z.literal('jobs') }),
    z.object({ do: z.literal('output'), id: jobId }),
    /** It ends with everything that it started. */
    z.object({ do: z.literal('end'), id: jobId }),
  ]),
})
export type SandboxAsk = z.infer<typeof sandboxParams>['ask']
