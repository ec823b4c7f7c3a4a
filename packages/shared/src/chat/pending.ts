/** What waits for a person's answer in all chats that they may answer in. */
import { z } from 'zod'
import { pendingApproval } from './pending-approvals.ts'
import { author } from './shares.ts'

const waitingApproval = pendingApproval.extend({
  sessionId: z.string(),
  /** Of the chat. */
  chat: z.string().nullable(),
  /** Whose chat it is, where that is not the reader's. */
  owner: author.optional(),
})
export type WaitingApproval = z.infer<typeof waitingApproval>

/**
 * `GET /api/approvals`: what waits, longest first. `more`: further chats have something that waits.
 */
export const waitingApprovals = z.object({ approvals: z.array(waitingApproval), more: z.boolean() })
export type WaitingApprovals = z.infer<typeof waitingApprovals>
