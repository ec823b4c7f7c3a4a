/** How much an agent may do without asking. */
import { z } from 'zod'

export const MODES = ['manual', 'auto-edit', 'yolo'] as const
export const mode = z.enum(MODES)
/**
 * `manual`: reads run, the rest asks. `auto-edit`: file edits run too. `yolo`: everything runs that
 * no rule denies.
 */
export type Mode = z.infer<typeof mode>
