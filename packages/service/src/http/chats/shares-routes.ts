/** `/api/sessions/:id/…`: with whom a chat is shared, links to what it was, and comments in it. */
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import {
  type NewShare,
  type Share,
  type ShareList,
  shareList,
  snapshotList,
} from '@sandlot/shared/chat/shares'
import { agentUserOf } from '../../auth/agent-user.ts'
import { refuseOthers } from '../../chat/sessions.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

export function sharesHandlers(parts: Parts) {
  const { agent, limits, sessions } = parts
  const ask = (c: Ctx, method: string, more: object): Promise<unknown> =>
    agent.request(method, {
      user: agentUserOf(c.var.caller),
      sessionId: c.req.param('id'),
      ...more,
    })
  const askShares = async (c: Ctx, what: object) =>
    shareList.parse(await ask(c, EXT.shares, { ask: what })).shares
  const askSnapshots = async (c: Ctx, what: object) =>
    snapshotList.parse(await ask(c, EXT.snapshots, { ask: what }))

  return {
    listShares: async (c) => c.json(await withNames(parts, await askShares(c, { do: 'list' }))),
    putShare: async (c, body) => {
      const share = await body()
      const { access } = await sessions.get(c.var.caller.account, c.req.param('id'))
      // Before anything is said about people.
      refuseOthers(access)
      await checkTarget(c, parts, share)
      const all = await askShares(c, { do: 'put', share })
      const made = all.find(({ kind, targetId }) => kind === share.kind && targetId === share.targetId)
      if (made === undefined) throw new SandlotError('conflict', 'This share was revoked at the same moment.')
      return c.json(made, 201)
    },
    removeShare: async (c) => {
      await askShares(c, { do: 'remove', id: c.req.param('shareId') })
      return c.body(null, 204)
    },
    makeSnapshot: async (c, body) => {
      const snapshot = await body()
      const { snapshots } = await askSnapshots(c, { do: 'make', snapshot })
      return c.json(snapshots.at(-1), 201)
    },
    removeSnapshot: async (c) => {
      await askSnapshots(c, { do: 'remove', id: c.req.param('snapshotId') })
      return c.body(null, 204)
    },
    comment: async (c, body) => {
      const comment = await body()
      // A mention is an e-mail: as many as messages.
      await limits.prompt(c.var.caller.account.id)
      await ask(c, EXT.comment, comment)
      return c.json({ commentId: comment.commentId }, 201)
    },
  } satisfies Partial<Handlers>
}

/** Throws `bad_request` and `not_found`, in words for who shares. */
async function checkTarget(c: Ctx, { accounts }: Parts, { kind, targetId }: NewShare): Promise<void> {
  if (kind === 'team') {
    const teams = await accounts.teams.list()
    if (teams.some(({ id }) => id === targetId)) return
    throw new SandlotError('not_found', 'There is no such team.')
  }
  if (targetId === c.var.caller.account.id)
    throw new SandlotError('bad_request', 'This chat is yours already: share it with another person.')
  const [users, removed] = await Promise.all([accounts.users.list(), accounts.removals.list()])
  if (users.some(({ id }) => id === targetId)) return
  throw removed.some(({ id }) => id === targetId)
    ? new SandlotError('not_found', 'This person was removed from this Sandlot.')
    : new SandlotError('not_found', 'There is no such person here.')
}

async function withNames({ accounts }: Parts, shares: readonly Share[]): Promise<ShareList> {
  const [users, teams] = await Promise.all([accounts.users.list(), accounts.teams.list()])
  const names = {
    person: new Map(users.map(({ id, name }) => [id, name])),
    team: new Map(teams.map(({ id, name }) => [id, name])),
  }
  return { shares: shares.map((share) => ({ ...share, name: names[share.kind].get(share.targetId) })) }
}
