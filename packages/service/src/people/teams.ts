/**
 * People and teams as far as the agent has to know of them: what changed about a person, and teams
 * of its configuration file, which the accounts adopt once.
 */
import { EXT, teamSeedsResult } from '@sandlot/shared/acp/meta'
import { messageOf } from '@sandlot/shared/base/errors'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import type { Agents } from '../agent/agents.ts'
import { addressFor } from '../auth/agent-user.ts'
import type { Logger } from '../log.ts'
import type { Sockets } from '../socket/sockets.ts'

interface TeamsParts {
  accounts: Pick<AccountsStore, 'users' | 'teams'>
  agent: Pick<Agents, 'request'>
  sockets: Pick<Sockets, 'personChanged'>
  log: Logger
}

/**
 * Their role or teams have changed: the agent gets to know, and their sockets begin again. Never
 * rejects: each later request says it too.
 */
export async function notifyPersonChanged(
  { accounts, agent, sockets, log }: TeamsParts,
  ...userIds: readonly string[]
): Promise<void> {
  try {
    const ids = new Set(userIds)
    for (const account of await accounts.users.list()) {
      const { id: userId, role, teams } = account
      if (ids.has(userId))
        await agent.request(EXT.putPerson, { userId, email: addressFor(account), role, teams })
    }
  } catch (error) {
    log.warn(
      { users: userIds, error: messageOf(error) },
      'the agent was not notified that an account changed',
    )
  }
  for (const userId of userIds) sockets.personChanged(userId)
}

/** Asks the agent for teams of its configuration file, whenever it is connected. Never rejects. */
export async function adoptTeams(parts: TeamsParts): Promise<void> {
  try {
    await adopt(parts)
  } catch (error) {
    parts.log.warn({ error: messageOf(error) }, 'teams of the configuration file were not adopted')
  }
}

async function adopt(parts: TeamsParts): Promise<void> {
  const { accounts, agent, log } = parts
  const { teams } = teamSeedsResult.parse(await agent.request(EXT.teamSeeds, {}))
  if (teams.length === 0) return
  const members = await accounts.teams.adopt(teams)
  // Before the agent leaves it to the accounts: until then it says itself who is in them.
  await notifyPersonChanged(parts, ...members)
  await agent.request(EXT.teamSeeds, { adopted: teams.map(({ id }) => id) })
  log.info({ teams: teams.map(({ name }) => name) }, 'adopted teams of the configuration file')
}
