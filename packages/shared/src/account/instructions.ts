/**
 * What people tell the agent beside the conversation: everybody for themselves, administrators for
 * the whole team.
 */
import { z } from 'zod'
import { instructionText } from '../base/instruction-text.ts'
import { agentUser } from './agent-user.ts'

/**
 * `GET` and `PUT /api/instructions`: one's own. `PUT /api/instructions/team`: the team's, by an
 * administrator.
 */
export const instructions = z.object({
  text: instructionText,
})
export type Instructions = z.infer<typeof instructions>

/** `GET /api/instructions/team`: what holds for everybody here. */
export const teamInstructions = z.object({
  /** What an administrator has written; empty: nothing. */
  text: z.string(),
  /** What the configuration file says to the team. It holds while `text` is empty. */
  configured: z.string(),
  /** Of the operator: by the configuration file alone. */
  operator: z.string(),
})
export type TeamInstructions = z.infer<typeof teamInstructions>

/**
 * `_sandlot/instructions`: with `text`, keep that; answers what is kept: `instructions`, or
 * `teamInstructions`.
 */
export const instructionsParams = z.object({
  user: agentUser,
  of: z.enum(['own', 'team']).default('own'),
  text: instructionText.optional(),
})
