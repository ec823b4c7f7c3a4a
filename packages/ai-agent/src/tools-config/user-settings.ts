/** The section `users` of the configuration file: what an administrator sets for single people. It wins over everything else. */
import { type Mode, MODES, mode } from '@sandlot/shared/events'
import { z } from 'zod'

const userSettings = z.strictObject({
  /** False: none. Or by tool id: false takes one away, true gives one that others do not have. */
  tools: z.union([z.boolean(), z.record(z.string().min(1).max(256), z.boolean())]).optional(),
  /** The highest mode they may choose. */
  modeCeiling: mode.optional(),
})

/** By user id. */
export const usersSection = z.record(z.string().min(1).max(128), userSettings)
export type UsersSection = z.output<typeof usersSection>

/** The lower of what the service says and what the administrator has set here. Undefined: no ceiling. */
export function modeCeilingOf(
  userId: string,
  section: UsersSection,
  said: Mode | undefined,
): Mode | undefined {
  const set = Object.hasOwn(section, userId) ? section[userId]?.modeCeiling : undefined
  if (set === undefined || said === undefined) return set ?? said
  return MODES.indexOf(set) < MODES.indexOf(said) ? set : said
}
