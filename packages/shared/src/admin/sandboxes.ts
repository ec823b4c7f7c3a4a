/** All sandboxes, for administrators: `/api/admin/sandboxes`. */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'
import { sandboxState, sandboxUse } from '../workspace/sandbox.ts'

const userId = z.string().min(1).max(128)

const sandboxRow = z.object({
  userId,
  /** `none`: only the files exist. */
  state: sandboxState,
  /** Epoch milliseconds of the assignment to this user. */
  since: z.number().optional(),
})

export const agentSandboxes = z.object({
  image: z.string(),
  /** Limits of each: bytes, and concurrent processors. */
  limits: z.object({ cpus: z.number(), memory: z.number(), processes: z.number(), disk: z.number() }),
  /** Assigned ones, newest first. */
  sandboxes: z.array(sandboxRow),
  /** Number of warm sandboxes. */
  warm: z.number(),
  /** Names of workspaces without a known owner in the ledger and the engine. */
  ownerless: z.array(z.string()),
})
export type AgentSandboxes = z.infer<typeof agentSandboxes>

/** `GET /api/admin/sandboxes` */
export const sandboxesView = agentSandboxes.extend({
  sandboxes: z.array(
    /** `name` absent: the account is removed. */
    sandboxRow.extend({ name: z.string().optional(), email: z.string().optional() }),
  ),
})
export type SandboxesView = z.infer<typeof sandboxesView>

/** Measured by one request: one screen. */
export const MOST_MEASURED = 50

/** `GET /api/admin/sandboxes/use?user=…&user=…`: current use of running ones; others are absent. */
export const sandboxUses = z.object({ uses: z.record(z.string(), sandboxUse) })
export type SandboxUses = z.infer<typeof sandboxUses>

/** `EXT.sandboxes`: answered with `AgentSandboxes`, `SandboxUses` or `{}`. */
export const sandboxesParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('list') }),
    z.object({ do: z.literal('use'), userIds: z.array(userId).max(MOST_MEASURED) }),
    /**
     * Ends every process and empties /tmp; the workspace stays. A missing workspace is recreated
     * empty.
     */
    z.object({ do: z.literal('reset'), userId }),
    /** The same; the next command starts it again. */
    z.object({ do: z.literal('stop'), userId }),
  ]),
})
export type SandboxesAsk = z.infer<typeof sandboxesParams>['ask']
