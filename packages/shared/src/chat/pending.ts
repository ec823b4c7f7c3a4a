/** Pending approvals in all chats in which a user may answer. */
import { z } from 'zod'
import { pendingApproval } from './pending-approvals.ts'
import { author } from './shares.ts'

const waitingApproval = pendingApproval.extend({
  sessionId: z.string(),
  /** The chat's title. */
  chat: z.string().nullable(),
  /** The chat's owner, unless that is the reader. */
  owner: author.optional(),
})
export type WaitingApproval = z.infer<typeof waitingApproval>

/** `GET /api/approvals`: longest wait first. `more`: further chats have pending approvals. */
export const waitingApprovals = z.object({ approvals: z.array(waitingApproval), more: z.boolean() })
export type WaitingApprovals = z.infer<typeof waitingApprovals>
