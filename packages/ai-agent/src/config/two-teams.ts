/**
 * Somebody who is in one team by user id and in another by e-mail address. The file alone does not show it: who has which
 * address is known from sign-in.
 */
import type { TeamsSection } from './user-settings.ts'

/** The sentence about this person, with what to write; undefined when they are in one team, or in none. */
export function twoTeamsProblem(
  teams: TeamsSection | undefined,
  userId: string,
  email: string | undefined,
): string | undefined {
  const teamOf = (key: string | undefined): string | undefined =>
    Object.entries(teams ?? {}).find(([, { members }]) => key !== undefined && members.includes(key))?.[0]
  const [byId, byAddress] = [teamOf(userId), teamOf(email)]
  if (byId === undefined || byAddress === undefined || byId === byAddress) return undefined
  return `teams: ${userId} in ${byId} and ${email} in ${byAddress} are the same person; a person is in one team, so remove one of the two`
}
