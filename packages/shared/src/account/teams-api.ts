/** Bodies of the routes of users and teams, for administrators. */
import { z } from 'zod'
import { personName } from './account-fields.ts'
import { role } from './role.ts'

const teamName = z.string().trim().min(1).max(100)

/**
 * `admin`: added by an administrator; `groups`: by their provider's groups, which may also remove
 * them.
 */
const memberSource = z.enum(['admin', 'groups'])
export type MemberSource = z.infer<typeof memberSource>

export const team = z.object({
  id: z.string(),
  name: z.string(),
  /** A user named by both sources is listed twice. */
  members: z.array(z.object({ userId: z.string(), source: memberSource })),
})
export type Team = z.infer<typeof team>

/** `GET /api/teams`, by name. */
export const teamList = z.object({ teams: z.array(team) })
export type TeamList = z.infer<typeof teamList>

/** `POST /api/teams` → 201 with the `Team`; `conflict`: the name is taken. */
export const newTeamRequest = z.strictObject({ name: teamName })
/**
 * `PATCH /api/teams/:id` → the `Team`. `was`: the name that the administrator saw; if it has
 * changed, `conflict` with the `Team` as `current`.
 */
export const renameTeamRequest = z.strictObject({ name: teamName, was: z.string().max(100).optional() })
/** `PUT /api/teams/:id/members/:userId` → the `Team`. Idempotent. */
export const teamMemberRequest = z.strictObject({ member: z.boolean() })

/**
 * `PATCH /api/users/:id` → the `Account`. `was`: the values that the administrator saw; if they
 * have changed, `conflict` with the `Account` as `current`.
 */
export const changePersonRequest = z.strictObject({
  role: role.optional(),
  name: personName.optional(),
  was: z.object({ role: role.optional(), name: z.string().optional() }).optional(),
})
export type ChangePersonRequest = z.infer<typeof changePersonRequest>
