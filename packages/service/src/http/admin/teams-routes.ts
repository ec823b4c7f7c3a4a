/**
 * Teams, and what administrators set for teams and people. Membership is in the accounts, settings
 * are the agent's. What would be half done without the agent is not begun without it.
 */
import { EXT, type SettingsAsk, settingsAnswer } from '@sandlot/shared/acp/meta'
import type { Account } from '@sandlot/shared/account/api'
import { SandlotError, messageOf, toErrorBody } from '@sandlot/shared/base/errors'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import { type SettingsSubject, type SettingsView } from '@sandlot/shared/account/agent-settings'
import type { Team, TeamList } from '@sandlot/shared/account/teams-api'
import { actorOf, addressFor, agentUserOf } from '../../auth/agent-user.ts'
import { notifyPersonChanged } from '../../people/teams.ts'
import type { Ctx, Parts } from '../context.ts'
import type { Body, Handlers } from '../actions.ts'

export function teamsHandlers(parts: Parts) {
  const { accounts } = parts
  return {
    listTeams: async (c) => c.json({ teams: await accounts.teams.list() } satisfies TeamList),
    addTeam: (c, body) => createTeam(parts, c, body),
    renameTeam: (c, body) => renameTeam(parts, c, c.req.param('id'), body),
    removeTeam: (c) => removeTeam(parts, c, c.req.param('id')),
    setTeamMember: (c, body) => setMember(parts, c, c.req.param(), body),
    getTeamSettings: async (c) => {
      const { id } = await findTeam(parts, c.req.param('id'))
      return getSettings(parts, c, { kind: 'team', id })
    },
    putTeamSettings: async (c, body) => {
      const { id, name } = await findTeam(parts, c.req.param('id'))
      return putSettings(parts, c, { kind: 'team', id }, await body(), name)
    },
  } satisfies Partial<Handlers>
}

async function findTeam({ accounts }: Parts, id: string): Promise<Team> {
  const found = (await accounts.teams.list()).find((team) => team.id === id)
  if (found === undefined) throw new SandlotError('not_found', 'There is no such team.')
  return found
}

function writeAudit({ accounts }: Parts, c: Ctx, line: Omit<NewAudit, 'who' | 'from'>): Promise<void> {
  return accounts.audit.write({ ...actorOf(c.var.caller), ...line })
}

async function createTeam(parts: Parts, c: Ctx, body: Body<'addTeam'>): Promise<Response> {
  const { accounts, log } = parts
  const { name } = await body()
  const team = await accounts.teams.create(name)
  await writeAudit(parts, c, { what: 'team_made', whom: { id: team.id, name } })
  log.info({ team: team.id, name, by: c.var.caller.account.id }, 'created a team')
  return c.json(team, 201)
}

async function renameTeam(parts: Parts, c: Ctx, id: string, body: Body<'renameTeam'>): Promise<Response> {
  const { accounts, log } = parts
  const { name, was } = await body()
  const before = await findTeam(parts, id)
  if (was !== undefined && was !== before.name)
    return conflict(c, `Another administrator has renamed this team to ${before.name}.`, before)
  const subject = { kind: 'team', id } as const
  await askSettings(parts, c, { do: 'rename', subject, name })
  try {
    const team = await accounts.teams.rename(id, name, before.name)
    const line = { before: { name: before.name }, after: { name } }
    await writeAudit(parts, c, { what: 'team_renamed', whom: { id, name }, ...line })
    log.info({ team: id, name, was: before.name, by: c.var.caller.account.id }, 'renamed a team')
    return c.json(team)
  } catch (error) {
    await askSettings(parts, c, { do: 'rename', subject, name: before.name }).catch((problem: unknown) =>
      log.warn(
        { team: id, error: messageOf(problem) },
        'the agent has another name for a team; rename the team again',
      ),
    )
    throw error
  }
}

async function removeTeam(parts: Parts, c: Ctx, id: string): Promise<Response> {
  const { accounts, log } = parts
  const subject = { kind: 'team', id } as const
  const { name, members } = await findTeam(parts, subject.id)
  // Settings of a team that is gone hold for no person; the agent has to be there first.
  await askSettings(parts, c, { do: 'get', subject })
  await accounts.teams.remove(subject.id)
  const before = { members: members.map(({ userId }) => userId) }
  await writeAudit(parts, c, { what: 'team_removed', whom: { id: subject.id, name }, before })
  log.info({ team: subject.id, name, by: c.var.caller.account.id }, 'removed a team')
  await askSettings(parts, c, { do: 'remove', subject }).catch((error: unknown) =>
    log.warn(
      { team: subject.id, error: messageOf(error) },
      'the settings of a removed team could not be removed',
    ),
  )
  await notifyPersonChanged(parts, ...new Set(members.map(({ userId }) => userId)))
  return c.body(null, 204)
}

async function setMember(
  parts: Parts,
  c: Ctx,
  { id, userId }: { id: string; userId: string },
  body: Body<'setTeamMember'>,
): Promise<Response> {
  const { accounts, log } = parts
  const { member } = await body()
  const team = await accounts.teams.setMember(id, userId, member)
  const what = member ? 'team_member_added' : 'team_member_removed'
  await writeAudit(parts, c, { what, whom: { id: userId }, after: { team: team.name } })
  log.info({ team: id, user: userId, member, by: c.var.caller.account.id }, 'changed the members of a team')
  await notifyPersonChanged(parts, userId)
  return c.json(team)
}

/** Role, name and settings of a user, and effective settings, also one's own. */
export function personHandlers(parts: Parts) {
  const { accounts, log } = parts
  const find = async (id: string): Promise<Account> => {
    const found = (await accounts.users.list()).find((user) => user.id === id)
    if (found === undefined) throw new SandlotError('not_found', 'There is no such person.')
    return found
  }
  return {
    changeUser: async (c, body) => {
      const id = c.req.param('id')
      const { was, ...change } = await body()
      const before = await find(id)
      if ((was?.role ?? before.role) !== before.role || (was?.name ?? before.name) !== before.name)
        return conflict(
          c,
          `Another administrator has changed this account: it is ${before.name}’s, with the role ${before.role}.`,
          before,
        )
      const account = await accounts.users.change(
        id,
        { ...change, was: before },
        { ...actorOf(c.var.caller), what: 'person_changed' },
      )
      log.info({ user: id, ...change, by: c.var.caller.account.id }, 'changed a person')
      await notifyPersonChanged(parts, id)
      return c.json(account)
    },
    getUserSettings: async (c) => {
      const { id, teams } = await find(c.req.param('id'))
      return getSettings(parts, c, { kind: 'person', id }, teams)
    },
    putUserSettings: async (c, body) => {
      const { id } = await find(c.req.param('id'))
      return putSettings(parts, c, { kind: 'person', id }, await body())
    },
    getUserEffective: async (c) => {
      const person = await find(c.req.param('id'))
      const { effective } = await askSettings(parts, c, {
        do: 'effective',
        userId: person.id,
        email: addressFor(person),
        teams: person.teams,
      })
      return c.json(effective)
    },
    getOwnEffective: async (c) => c.json((await askSettings(parts, c, { do: 'own' })).effective),
  } satisfies Partial<Handlers>
}

async function askSettings({ agent }: Parts, c: Ctx, ask: SettingsAsk) {
  const user = agentUserOf(c.var.caller)
  return settingsAnswer.parse(await agent.request(EXT.settings, { user, ask }))
}

/** The stored settings, and the value that holds where none is stored. */
async function getSettings(
  parts: Parts,
  c: Ctx,
  subject: SettingsSubject,
  teams?: string[],
): Promise<Response> {
  const { view, without, offered } = await askSettings(parts, c, { do: 'get', subject, teams })
  return c.json({ ...view, without, offered })
}

async function putSettings(
  parts: Parts,
  c: Ctx,
  subject: SettingsSubject,
  put: SettingsView,
  name?: string,
): Promise<Response> {
  const answer = await askSettings(parts, c, { do: 'put', subject, name, ...put })
  if (answer.conflict !== undefined)
    return conflict(c, 'Another administrator has changed these settings. Load them again.', answer.conflict)
  const { id: by } = c.var.caller.account
  parts.log.info({ ...subject, settings: Object.keys(put.settings), by }, 'changed settings of the agent')
  return c.json(answer.view)
}

/** `current`: what the other administrator has left. */
function conflict(c: Ctx, message: string, current: object): Response {
  return c.json({ ...toErrorBody(new SandlotError('conflict', message), c.var.requestId), current }, 409)
}
