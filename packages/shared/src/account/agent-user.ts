/** The user for whom the service asks ai-agent. */
import { z } from 'zod'
import { mode } from '../chat/mode.ts'
import { role } from './role.ts'

/** The origin of a request, for the audit log. */
export const auditFrom = z.object({
  /** The client’s, as reported by a trusted proxy. */
  address: z.string().max(100).optional(),
  /** The API key's name. */
  key: z.string().max(100).optional(),
  /** Id of the sign-in. */
  signIn: z.string().max(128).optional(),
})
export type AuditFrom = z.infer<typeof auditFrom>

/** On every session request of a client that the socket trusts. */
export const agentUser = z.object({
  id: z.string().min(1).max(128),
  role: role.default('member'),
  /** Shown to others as the author of their messages. */
  name: z.string().max(100).optional(),
  /** Ids of their teams in the accounts; absent: none. */
  teams: z.array(z.string().min(1).max(128)).max(1_000).optional(),
  /** Their sign-in address: an administrator may refer to them by it. */
  email: z.string().max(254).optional(),
  /** The highest mode that an administrator permits. */
  modeCeiling: mode.optional(),
  from: auditFrom.optional(),
})
export type AgentUser = z.infer<typeof agentUser>
