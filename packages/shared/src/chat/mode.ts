/** Modes: the agent's freedom to act without asking. */
import { z } from 'zod'

export const MODES = ['manual', 'auto-edit', 'auto', 'yolo'] as const
export const mode = z.enum(MODES)
/**
 * `manual`: reads run, the rest asks. `auto-edit`: file edits run too. `auto`: so do commands of a
 * sandbox without external access. `yolo`: everything runs that no rule denies.
 */
export type Mode = z.infer<typeof mode>

/** True when the ceiling permits the mode. */
export function isWithin(ceiling: Mode | undefined, chosen: Mode): boolean {
  return lowerMode(chosen, ceiling) === chosen
}

/** Undefined: no limit. */
export function lowerMode(one: Mode, other: Mode | undefined): Mode
export function lowerMode(one: Mode | undefined, other: Mode | undefined): Mode | undefined
export function lowerMode(one: Mode | undefined, other: Mode | undefined): Mode | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return MODES.indexOf(one) < MODES.indexOf(other) ? one : other
}
