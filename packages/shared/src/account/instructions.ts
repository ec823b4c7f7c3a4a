/**
 * Standing instructions to the agent: a user's own, and those of administrators for the whole team.
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

/** `GET /api/instructions/team`: instructions for everyone. */
export const teamInstructions = z.object({
  /** Written by an administrator; empty: none. */
  text: z.string(),
  /** The configuration file's text for the team. It applies while `text` is empty. */
  configured: z.string(),
  /** The operator's text, only in the configuration file. */
  operator: z.string(),
})
export type TeamInstructions = z.infer<typeof teamInstructions>

/**
 * `_sandlot/instructions`: stores `text` if given; answers with the stored `instructions` or
 * `teamInstructions`.
 */
export const instructionsParams = z.object({
  user: agentUser,
  of: z.enum(['own', 'team']).default('own'),
  text: instructionText.optional(),
})
