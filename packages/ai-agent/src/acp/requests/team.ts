/**
 * Requests about teams and people: what administrators have set, and what the service says of a
 * person.
 */
import { EXT, type SettingsAnswer, type SettingsAsk } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { BudgetList } from '@sandlot/shared/admin/usage'
import type { SettingsRegistry } from '../../people/settings-registry.ts'
import { actorOf } from '../actor.ts'
import type { AdminParts, PersonParts, ProtocolParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

export function teamRequests(parts: AdminParts & PersonParts & ProtocolParts) {
  return {
    [EXT.settings]: async ({ params: { user, ask } }) => {
      if (ask.do === 'own') return { effective: parts.settings.effective(user) } satisfies SettingsAnswer
      if (user.role !== 'admin') throw new SandlotError('forbidden', 'Only an administrator can do this.')
      const answer = await answerSettings(parts.settings, ask, user)
      if (ask.do === 'put' || ask.do === 'remove')
        parts.log.info(
          { by: user.id, subject: ask.subject, done: answer.conflict === undefined },
          `an administrator’s ${ask.do} of settings`,
        )
      return answer
    },
    [EXT.budgets]: async ({ params: { user } }) => {
      // Their teams are said with it, also before their first chat.
      parts.userSeen(user)
      return { budgets: await parts.budgetsOf(user.id) } satisfies BudgetList
    },
    [EXT.putPerson]: async ({ params: { userId, ...person } }) => {
      parts.userSeen({ id: userId, ...person } satisfies AgentUser)
      return {}
    },
    [EXT.teamSeeds]: async ({ params: { adopted = [] } }) => {
      await parts.settings.adopted(adopted)
      return { teams: parts.settings.teamSeeds() }
    },
  } satisfies Partial<ExtensionHandlers>
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
