/** Everybody's sandboxes, for administrators: `/api/admin/sandboxes`. */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'
import { sandboxState, sandboxUse } from '../workspace/sandbox.ts'

const userId = z.string().min(1).max(128)

const sandboxRow = z.object({
  userId,
  /** `none`: only the files are there. */
  state: sandboxState,
  /** Epoch milliseconds: since when this person has it. */
  since: z.number().optional(),
})

export const agentSandboxes = z.object({
  image: z.string(),
  /** Of each. Bytes, and processors that it may use at once. */
  limits: z.object({ cpus: z.number(), memory: z.number(), processes: z.number(), disk: z.number() }),
  /** Those that belong to people, newest first. */
  sandboxes: z.array(sandboxRow),
  /** How many are kept ready for new people. */
  warm: z.number(),
  /** Names of workspaces that neither the ledger nor the engine knows the owner of. */
  ownerless: z.array(z.string()),
})
export type AgentSandboxes = z.infer<typeof agentSandboxes>

/** `GET /api/admin/sandboxes` */
export const sandboxesView = agentSandboxes.extend({
  sandboxes: z.array(
    /** `name` absent: the account is gone. */
    sandboxRow.extend({ name: z.string().optional(), email: z.string().optional() }),
  ),
})
export type SandboxesView = z.infer<typeof sandboxesView>

/** So many are measured by one request: what one sees. */
export const MOST_MEASURED = 50

/**
 * `GET /api/admin/sandboxes/use?user=…&user=…`: what those use now that are awake; the others are
 * missing.
 */
export const sandboxUses = z.object({ uses: z.record(z.string(), sandboxUse) })
export type SandboxUses = z.infer<typeof sandboxUses>

/** `EXT.sandboxes`: answered with `AgentSandboxes`, `SandboxUses` or `{}`. */
export const sandboxesParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('list') }),
    z.object({ do: z.literal('use'), userIds: z.array(userId).max(MOST_MEASURED) }),
    /** Every process ends and /tmp is emptied; the workspace stays. A missing one begins empty. */
    z.object({ do: z.literal('reset'), userId }),
    /** The same, and it is started again by the next command. */
    z.object({ do: z.literal('stop'), userId }),
  ]),
})
export type SandboxesAsk = z.infer<typeof sandboxesParams>['ask']
