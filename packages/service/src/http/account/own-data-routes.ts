/** One's own data: all of it as an archive, and the end of one's account. */
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import { serversView } from '@sandlot/shared/admin/mcp-servers'
import { directoryList, filePiece } from '@sandlot/shared/workspace/files'
import { instructions } from '@sandlot/shared/account/instructions'
import { ruleList } from '@sandlot/shared/account/rules-api'
import { secretList } from '@sandlot/shared/account/secrets'
import { actorOf, agentUserOf } from '../../auth/agent-user.ts'
import { fillOwnData } from '../../own-data/archive.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Body, Handlers } from '../actions.ts'
import { streamZip } from '../../own-data/folder-zip.ts'
import { requireSignIn } from '../request.ts'

/** `/api/export`, `/api/account/delete` */
export function ownDataHandlers(parts: Parts): Pick<Handlers, 'exportOwnData' | 'deleteAccount'> {
  const { accounts, sessions } = parts
  const exporting = new Set<string>()
  return {
    exportOwnData: async (c) => {
      const { account } = c.var.caller
      if (exporting.has(account.id))
        throw new SandlotError(
          'rate_limited',
          'Your data is being exported already. Wait until that is done, or end it.',
        )
      exporting.add(account.id)
      try {
        const data = {
          account,
          facts: await factsOf(parts, account.id),
          reader: await sessions.reader(),
          audit: [(await sessions.reader()).admin.audit, accounts.audit],
          agent: account.role === 'guest' ? undefined : await askAgent(parts, c),
        }
        await accounts.audit.write({ ...actorOf(c.var.caller), what: 'data_exported' })
        const body = streamZip(
          (into) => fillOwnData(into, data),
          () => exporting.delete(account.id),
        )
        const day = new Date().toISOString().slice(0, 10)
        return new Response(body, {
          headers: {
            'content-type': 'application/zip',
            'x-content-type-options': 'nosniff',
            'content-disposition': `attachment; filename="sandlot-my-data-${day}.zip"`,
            'cache-control': 'no-store',
          },
        })
      } catch (error) {
        exporting.delete(account.id)
        throw error
      }
    },
    deleteAccount: (c, body) => deleteAccount(parts, c, body),
  }
}

/** Removes the caller's account. Throws `forbidden` (password), `bad_request` (address). */
async function deleteAccount(
  { accounts, limits, log, removals }: Parts,
  c: Ctx,
  body: Body<'deleteAccount'>,
): Promise<Response> {
  const caller = requireSignIn(c)
  const { id, email } = caller.account
  const said = await body()
  if (said.email.trim().toLowerCase() !== email.toLowerCase())
    throw new SandlotError('bad_request', 'This is not the address of your account.')
  if (await accounts.external.hasPassword(id)) {
    const given = said.password
    if (given === undefined || given === '')
      throw new SandlotError('forbidden', 'Type your password as well.')
    // A stolen sign-in must not allow guessing it.
    await limits.signIn({ address: c.var.address, email }, () => accounts.passwords.check(id, given))
  }
  const line = { ...actorOf(caller), what: 'person_removed' } as const
  await removals.remove(id, 'purge', line)
  log.info({ user: id }, 'removed their own account')
  c.set('caller', { ...caller, setCookies: [] })
  for (const ended of (await accounts.signIns.signOut(c.req.header('cookie') ?? '')).setCookies)
    c.header('set-cookie', ended, { append: true })
  return c.body(null, 204)
}

async function factsOf({ accounts }: Parts, userId: string): Promise<Record<string, unknown>> {
  const teams = (await accounts.teams.list()).filter(({ members }) =>
    members.some((member) => member.userId === userId),
  )
  return {
    teams: teams.map(({ id, name }) => ({ id, name })),
    hasPassword: await accounts.external.hasPassword(userId),
    secondFactor: await accounts.secondFactor.isOn(userId),
    providers: await accounts.external.links(userId),
    signIns: await accounts.signIns.list(userId),
    keys: await accounts.keys.list(userId),
    notices: (await accounts.notifications.recipient(userId))?.choice,
  }
}

/** Throws `agent_unavailable`: an archive without what it has is none. */
async function askAgent({ agent }: Parts, c: Ctx) {
  const user = agentUserOf(c.var.caller)
  const list = { user, ask: { do: 'list' } }
  return {
    rules: ruleList.parse(await agent.request(EXT.rules, list)),
    secrets: secretList.parse(await agent.request(EXT.secrets, list)),
    servers: serversView.parse(await agent.request(EXT.mcpServers, { user, ask: { do: 'list', of: 'own' } })),
    instructions: instructions.parse(await agent.request(EXT.instructions, { user, of: 'own' })),
    files: {
      list: async (path: string, after?: string) =>
        directoryList.parse(await agent.request(EXT.files, { user, ask: { do: 'list', path, after } })),
      read: async (path: string, offset: number) =>
        filePiece.parse(await agent.request(EXT.files, { user, ask: { do: 'read', path, offset } })),
    },
  }
}
