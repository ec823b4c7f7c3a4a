/** Invitations, for administrators: make, list, revoke. */
import { SandlotError } from '@sandlot/shared/base/errors'
import { newInvitationRequest } from '@sandlot/shared/account/sign-in-api'
import type { NewInvitation } from '@sandlot/shared/account/sign-in-api'
import { Hono } from 'hono'
import { actorOf } from '../../auth/agent-user.ts'
import type { AppEnv, Parts } from '../context.ts'
import { readBody, requireAdministrator, requireCaller } from '../request.ts'

const HOUR_MS = 60 * 60 * 1000

export function invitationsRoutes(parts: Parts): Hono<AppEnv> {
  const { accounts, config, log } = parts
  return new Hono<AppEnv>()
    .use(requireCaller(parts))
    .get('/', async (c) => {
      requireAdministrator(c)
      return c.json({ invitations: await accounts.invitations.list() })
    })
    .post('/', async (c) => {
      requireAdministrator(c)
      const { account } = c.var.caller
      const { expiresInHours, email = null, ...given } = await readBody(c, newInvitationRequest)
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
    })
    .delete('/:id', async (c) => {
      requireAdministrator(c)
      const id = c.req.param('id')
      if (!(await accounts.invitations.revoke(id)))
        throw new SandlotError('not_found', 'There is no such invitation.')
      await accounts.audit.write({ ...actorOf(c.var.caller), what: 'invitation_revoked', whom: { id } })
      log.info({ invitation: id, by: c.var.caller.account.id }, 'revoked an invitation')
      return c.body(null, 204)
    })
}
