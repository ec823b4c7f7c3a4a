/** How much an agent may do without asking. */
import { z } from 'zod'

export const MODES = ['manual', 'auto-edit', 'auto', 'yolo'] as const
export const mode = z.enum(MODES)
/**
 * `manual`: reads run, the rest asks. `auto-edit`: file edits run too. `auto`: so do commands of a
 * sandbox that reaches nothing. `yolo`: everything runs that no rule denies.
 */
export type Mode = z.infer<typeof mode>
