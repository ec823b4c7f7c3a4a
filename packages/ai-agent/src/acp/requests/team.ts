/**
 * Requests about teams and people: what administrators have set, and what the service says of a
 * person.
 */
import {
  EXT,
  type SettingsAnswer,
  type SettingsAsk,
  budgetsParams,
  putPersonParams,
  settingsParams,
  teamSeedsParams,
} from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { BudgetList } from '@sandlot/shared/admin/usage'
import type { SettingsRegistry } from '../../people/settings-registry.ts'
import { actorOf } from '../actor.ts'
import { parseParams } from '../errors.ts'
import type { AdminParts, PersonParts, ProtocolParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

export function teamRequests({
  settings: registry,
  budgetsOf,
  userSeen,
  log,
}: AdminParts & PersonParts & ProtocolParts): ExtensionHandlers {
  return {
    [EXT.settings]: async ({ params }) => {
      const { user, ask } = parseParams(settingsParams, params, EXT.settings)
      if (ask.do === 'own') return { effective: registry.effective(user) } satisfies SettingsAnswer
      if (user.role !== 'admin') throw new SandlotError('forbidden', 'Only an administrator can do this.')
      const answer = await answerSettings(registry, ask, user)
      if (ask.do === 'put' || ask.do === 'remove')
        log.info(
          { by: user.id, subject: ask.subject, done: answer.conflict === undefined },
          `an administrator’s ${ask.do} of settings`,
        )
      return answer
    },
    [EXT.budgets]: async ({ params }) => {
      const { user } = parseParams(budgetsParams, params, EXT.budgets)
      // Their teams are said with it, also before their first chat.
      userSeen(user)
      return { budgets: await budgetsOf(user.id) } satisfies BudgetList
    },
    [EXT.putPerson]: async ({ params }) => {
      const { userId, ...person } = parseParams(putPersonParams, params, EXT.putPerson)
      userSeen({ id: userId, ...person } satisfies AgentUser)
      return {}
    },
    [EXT.teamSeeds]: async ({ params }) => {
      const { adopted = [] } = parseParams(teamSeedsParams, params, EXT.teamSeeds)
      await registry.adopted(adopted)
      return { teams: registry.teamSeeds() }
    },
  }
}

async function answerSettings(
  registry: SettingsRegistry,
  ask: Exclude<SettingsAsk, { do: 'own' }>,
  by: AgentUser,
): Promise<SettingsAnswer> {
  switch (ask.do) {
    case 'list':
      return { all: registry.all.map(({ subject, revision }) => ({ subject, revision })) }
    case 'get': {
      // No person has this id, so nothing is set for them alone.
      const of = (teams: readonly string[]) => registry.effective({ id: '', teams })
      const { mcpServers, models } = of([])
      return {
        view: registry.view(ask.subject),
        without: of(ask.teams ?? []),
        offered: { mcpServers: mcpServers.value, models: models.value, tools: [...registry.tools] },
      }
    }
    case 'put': {
      const view = await registry.put(ask.subject, ask, ask.name, (before) => ({
        ...actorOf(by),
        what: 'settings_changed',
        whom: { id: ask.subject.id, name: ask.name },
        before,
        after: ask.settings,
      }))
      return view === undefined ? { conflict: registry.view(ask.subject) } : { view }
    }
    case 'remove':
      await registry.remove(ask.subject, {
        ...actorOf(by),
        what: 'settings_removed',
        whom: { id: ask.subject.id },
        before: registry.view(ask.subject).settings,
      })
      return {}
    case 'rename':
      await registry.rename(ask.subject, ask.name)
      return {}
    case 'effective':
      return { effective: registry.effective({ id: ask.userId, email: ask.email, teams: ask.teams }) }
  }
}
