/**
 * The sections `users` and `teams` of the configuration file: what an administrator sets for single
 * people and for groups of them. They and `limits.users` are read once, as the first rows of
 * `SettingsRegistry`.
 */
import { messageOf } from '@sandlot/shared/base/errors'
import { randomText } from '@sandlot/shared/base/ids'
import { mode } from '@sandlot/shared/chat/mode'
import {
  type AgentSettings,
  ALL_TOOLS,
  networkSettings,
  toolsByName,
} from '@sandlot/shared/account/agent-settings'
import { readRules } from '@sandlot/sandbox/egress/rules'
import { z } from 'zod'
import type { AgentSettingsRows } from '@sandlot/storage/people/agent-settings'
import { type LimitSettings, limitsCost } from '../limits/settings.ts'
import type { Log } from '../log.ts'
import type { People } from '../people/people.ts'
import { byPerson, personKey } from '../people/person-key.ts'
import { SettingsRegistry, type SettingsSeeds } from '../people/settings-registry.ts'
import type { NetworkConfig } from './network.ts'

/** Each host that cannot be allowed is a problem. */
const network = networkSettings.superRefine(({ hosts = [] }, ctx) => {
  for (const [at, entry] of hosts.entries()) {
    const message = hostProblem(entry)
    if (message !== undefined) ctx.addIssue({ code: 'custom', path: ['hosts', at], message })
  }
})

function hostProblem(entry: string): string | undefined {
  try {
    readRules([entry])
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

const settings = {
  /** False: none. Or by tool id: false takes one away, true gives one that others do not have. */
  tools: z.union([z.boolean(), z.record(z.string().min(1).max(256), z.boolean())]).optional(),
  /** The highest mode they may choose. */
  modeCeiling: mode.optional(),
  /** Network access of their sandbox. */
  network: network.optional(),
}
const userSettings = z.strictObject(settings)

/** By user id or e-mail address. */
export const usersSection = byPerson(userSettings)
type UsersSection = z.output<typeof usersSection>

/** By a name of the operator's own. */
export const teamsSection = z.record(
  z.string().min(1).max(100),
  z.strictObject({ members: z.array(personKey).min(1), ...settings }),
)
type TeamsSection = z.output<typeof teamsSection>

/** The rows of what the file sets. Each call gives the teams other ids. */
export function settingsSeeds(
  { users = {}, teams = {} }: { users?: UsersSection | undefined; teams?: TeamsSection | undefined },
  limits: LimitSettings['written']['users'],
): SettingsSeeds {
  const people = new Map<string, AgentSettings>(Object.entries(users))
  for (const [key, own] of limits) people.set(key, { ...people.get(key), limits: own })
  const ofTeams = Object.entries(teams).map(([name, { members, ...set }]) => ({
    subject: { kind: 'team' as const, id: `t_${randomText(20)}` },
    name,
    settings: set,
    members,
  }))
  const ofPeople = [...people].map(([id, set]) => ({
    subject: { kind: 'person' as const, id },
    settings: set,
  }))
  const given = { users: Object.keys(users), teams: ofTeams, 'limits.users': [...limits.keys()] }
  return {
    rows: [...ofTeams, ...ofPeople],
    sections: Object.entries(given).flatMap(([name, { length }]) => (length === 0 ? [] : [name])),
  }
}

/** Names that settings may use. */
interface KnownNames {
  tools: readonly string[]
  servers: () => readonly string[]
  models: () => readonly string[]
  /** Why no cost can be limited; undefined: it can. */
  unpriced: () => string | undefined
}

/** A sentence that says what cannot be, and what there is instead; undefined: all of it can. */
function settingsProblem(set: AgentSettings, known: KnownNames): string | undefined {
  const missing = (what: string, names: readonly string[] = [], there: readonly string[]): string[] =>
    names
      .filter((name) => !there.includes(name))
      .map((name) => `There is no ${what} “${name}” here; there is ${there.join(', ') || 'none'}.`)
  // A server's tools are not known before it is asked.
  const builtin = Object.keys(toolsByName(set.tools)).filter((id) => id !== ALL_TOOLS && !id.includes('::'))
  const hosts = (set.network?.hosts ?? []).flatMap((host) => hostProblem(host) ?? [])
  const problems = [
    ...hosts.map((problem) => `${problem}.`),
    ...missing('tool', builtin, known.tools),
    ...missing('MCP server', set.mcpServers, known.servers()),
    ...missing('model', set.models, known.models()),
    ...(limitsCost(set.limits, set.together) ? [known.unpriced() ?? []].flat() : []),
  ]
  return problems[0]
}

interface SettingsSources extends KnownNames {
  file: {
    users?: UsersSection | undefined
    teams?: TeamsSection | undefined
    rules?: { hosts?: string | undefined } | undefined
  }
  limits: LimitSettings
  toolsEnabled: boolean
  network: NetworkConfig
  log: Log
}

/** `rows` after the file has seeded them. */
export async function openSettings(
  rows: AgentSettingsRows,
  people: People,
  { file, limits, toolsEnabled, network: { egress, everybody }, log, ...known }: SettingsSources,
): Promise<SettingsRegistry> {
  const parts = {
    rows,
    people,
    deployment: {
      tools: toolsEnabled,
      get mcpServers() {
        return known.servers()
      },
      get models() {
        return known.models()
      },
      network: {
        mode: everybody ? ('egress' as const) : ('none' as const),
        hosts: egress.allow,
        ask: file.rules?.hosts === 'ask',
      },
      limits: limits.written.everybody,
    },
    tools: known.tools,
    problem: (set: AgentSettings) => settingsProblem(set, known),
    now: Date.now,
    log,
  }
  const registry = await SettingsRegistry.open(parts, settingsSeeds(file, limits.written.users))
  const opens = (set: AgentSettings): boolean => set.network?.mode === 'egress'
  if (egress.allow.length > 0 && !everybody && !registry.all.some(({ settings: set }) => opens(set)))
    log.warn(
      {},
      'SANDLOT_EGRESS_ALLOW has no effect: no user has network access; set SANDLOT_SANDBOX_NETWORK=egress',
    )
  return registry
}
