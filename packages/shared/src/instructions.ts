/** A person's own instructions for the agent, in all their sessions. */
import { z } from 'zod'
import { agentUser } from './acp-meta.ts'

/** Bytes of UTF-8. */
export const MAX_INSTRUCTION_BYTES = 8 * 1024

export const instructions = z.object({
  text: z
    .string()
    .refine(
      (text) => new TextEncoder().encode(text).length <= MAX_INSTRUCTION_BYTES,
      `must have at most ${MAX_INSTRUCTION_BYTES} bytes`,
    ),
})
export type Instructions = z.infer<typeof instructions>

/** `_sandlot/instructions`: with `text`, keep that; answers what is kept. */
export const instructionsParams = z.object({ user: agentUser, text: instructions.shape.text.optional() })
