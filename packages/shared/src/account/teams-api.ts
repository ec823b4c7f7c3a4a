/** Bodies of the routes of people and teams, for administrators. */
import { z } from 'zod'
import { personName } from './account-fields.ts'
import { role } from './role.ts'

const teamName = z.string().trim().min(1).max(100)

/** `admin`: an administrator added them; `groups`: their provider's groups did, and may end it. */
const memberSource = z.enum(['admin', 'groups'])
export type MemberSource = z.infer<typeof memberSource>

export const team = z.object({
  id: z.string(),
  name: z.string(),
  /** One person is there twice where both sources name them. */
  members: z.array(z.object({ userId: z.string(), source: memberSource })),
})
export type Team = z.infer<typeof team>

/** `GET /api/teams`, by name. */
export const teamList = z.object({ teams: z.array(team) })
export type TeamList = z.infer<typeof teamList>

/** `POST /api/teams` → 201 with the `Team`; `conflict`: the name is taken. */
export const newTeamRequest = z.strictObject({ name: teamName })
/**
 * `PATCH /api/teams/:id` → the `Team`. `was`: the name that the administrator saw; another one by
 * now is a `conflict`, whose body has the `Team` as `current`.
 */
export const renameTeamRequest = z.strictObject({ name: teamName, was: z.string().max(100).optional() })
/** `PUT /api/teams/:id/members/:userId` → the `Team`. Idempotent. */
export const teamMemberRequest = z.strictObject({ member: z.boolean() })

/**
 * `PATCH /api/users/:id` → the `Account`. `was`: what the administrator saw; something else by now
 * is a `conflict`, whose body has the `Account` as `current`.
 */
export const changePersonRequest = z.strictObject({
  role: role.optional(),
  name: personName.optional(),
  was: z.object({ role: role.optional(), name: z.string().optional() }).optional(),
})
export type ChangePersonRequest = z.infer<typeof changePersonRequest>
