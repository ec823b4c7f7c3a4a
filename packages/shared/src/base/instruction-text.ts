/** The text of instructions: a person's, a team's, or those of a project. */
import { z } from 'zod'

/** Bytes of UTF-8. */
export const MAX_INSTRUCTION_BYTES = 8 * 1024

export const instructionText = z
  .string()
  .refine(
    (text) => new TextEncoder().encode(text).length <= MAX_INSTRUCTION_BYTES,
    `must have at most ${MAX_INSTRUCTION_BYTES} bytes`,
  )
