/** Invitations, for administrators: make, list, revoke. */
import { SandlotError } from '@sandlot/shared/base/errors'
import type { NewInvitation } from '@sandlot/shared/account/sign-in-api'
import { actorOf } from '../../auth/agent-user.ts'
import type { Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

const HOUR_MS = 60 * 60 * 1000

export function invitationsHandlers(parts: Parts) {
  const { accounts, config, log } = parts
  return {
    listInvitations: async (c) => {
      return c.json({ invitations: await accounts.invitations.list() })
    },
    makeInvitation: async (c, body) => {
      const { account } = c.var.caller
      const { expiresInHours, email = null, ...given } = await body()
      const expiresAt = Date.now() + expiresInHours * HOUR_MS
      const { token, ...made } = await accounts.invitations.create({
        ...given,
        email,
        createdBy: account.name,
        expiresAt,
      })
      log.info({ invitation: made.id, role: made.role, by: account.id }, 'made an invitation')
      await accounts.audit.write({
        ...actorOf(c.var.caller),
        what: 'invitation_made',
        whom: { id: made.id, name: email ?? undefined },
        after: { role: made.role, teams: made.teams, expiresAt },
      })
      const origin = config.publicUrl ?? new URL(c.req.url).origin
      return c.json({ ...made, url: `${origin}/invitation?token=${token}` } satisfies NewInvitation, 201)
    },
    revokeInvitation: async (c) => {
      const id = c.req.param('id')
      if (!(await accounts.invitations.revoke(id)))
        throw new SandlotError('not_found', 'There is no such invitation.')
      await accounts.audit.write({ ...actorOf(c.var.caller), what: 'invitation_revoked', whom: { id } })
      log.info({ invitation: id, by: c.var.caller.account.id }, 'revoked an invitation')
      return c.body(null, 204)
    },
  } satisfies Partial<Handlers>
}
