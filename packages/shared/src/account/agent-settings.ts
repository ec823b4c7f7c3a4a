/**
 * Agent settings of a team or a person, set by administrators, and the effective settings of a
 * person. The person's own settings win; then the most generous of their teams' settings; then the
 * deployment's.
 */
import { z } from 'zod'
import { MODES, mode } from '../chat/mode.ts'

const amount = z.number().nonnegative()
const count = z.int().nonnegative()

/**
 * Per message, per day, and per month. 0 is no limit. Those that are no `isEditableLimit` are
 * stored values of the previous version: enforced, but no longer set. Remove them one version
 * later.
 */
export const agentLimits = z.strictObject({
  turns: z.int().min(1).max(1_000).optional(),
  calls: count.optional(),
  tokens: count.optional(),
  cost: amount.optional(),
  promptSeconds: count.optional(),
  turnsPerDay: count.optional(),
  callsPerDay: count.optional(),
  tokensPerDay: count.optional(),
  costPerDay: amount.optional(),
  secondsPerDay: count.optional(),
  turnsPerMonth: count.optional(),
  callsPerMonth: count.optional(),
  tokensPerMonth: count.optional(),
  costPerMonth: amount.optional(),
  secondsPerMonth: count.optional(),
})
export type AgentLimits = z.infer<typeof agentLimits>
export type LimitName = keyof AgentLimits
export const LIMIT_NAMES = Object.keys(agentLimits.shape) as LimitName[]

/** False for a limit that can only be kept or removed. */
export function isEditableLimit(name: string): boolean {
  return /^(turns|cost|promptSeconds|(tokens|cost)Per(Day|Month))$/.test(name)
}

/** For several people together: their usage is added up. 0 is no limit. */
const teamLimits = agentLimits.pick({
  turnsPerDay: true,
  callsPerDay: true,
  tokensPerDay: true,
  costPerDay: true,
  secondsPerDay: true,
  turnsPerMonth: true,
  callsPerMonth: true,
  tokensPerMonth: true,
  costPerMonth: true,
  secondsPerMonth: true,
})
export type TeamLimits = z.infer<typeof teamLimits>
export type TeamLimitName = keyof TeamLimits
export const TEAM_LIMIT_NAMES = Object.keys(teamLimits.shape) as TeamLimitName[]

export const networkSettings = z
  .strictObject({
    /** Default: SANDLOT_SANDBOX_NETWORK. */
    mode: z.enum(['none', 'egress']).optional(),
    /** Replaces SANDLOT_EGRESS_ALLOW, in the same syntax. */
    hosts: z.array(z.string().min(1).max(300)).max(1_000).optional(),
    /** The agent may ask them for more hosts. Default: `rules.hosts`. */
    ask: z.boolean().optional(),
  })
  .refine(
    ({ mode: set, hosts, ask }) => set !== 'none' || (hosts === undefined && ask !== true),
    'hosts and ask say nothing with "mode": "none"; remove them, or write "mode": "egress"',
  )

/**
 * The MCP servers that a person may add: `none`; `public`: at public addresses, and programs in
 * their sandbox; `local`: at addresses of the deployment’s network as well.
 */
export const OWN_SERVERS = ['none', 'public', 'local'] as const
export const ownServers = z.enum(OWN_SERVERS)
export type OwnServers = z.infer<typeof ownServers>

/** Everything is optional: an absent member is not set for the team or the person. */
export const agentSettings = z.strictObject({
  /** False: none. Or by tool id: false removes a tool, true grants it; `*`: all unnamed tools. */
  tools: z.union([z.boolean(), z.record(z.string().min(1).max(256), z.boolean())]).optional(),
  /** The highest mode they may choose. */
  modeCeiling: mode.optional(),
  /** External access of their sandbox. */
  network: networkSettings.optional(),
  /** Names of the permitted MCP servers of the configuration. */
  mcpServers: z.array(z.string().min(1).max(200)).max(200).optional(),
  /** MCP servers that they may add themselves. */
  ownServers: ownServers.optional(),
  /** Names of the models that their chats may choose. */
  models: z.array(z.string().min(1).max(200)).min(1).max(200).optional(),
  /** For each of them. */
  limits: agentLimits.optional(),
  /** Only of a team: for all of its members together. */
  together: teamLimits.optional(),
  /** Instructions for the agent. */
  instructions: z
    .string()
    .max(64 * 1024)
    .optional(),
})
export type AgentSettings = z.infer<typeof agentSettings>
/** Names of limits in `after` that are no longer editable, and are not as in `before`. */
export function editedLegacyLimits(before: AgentSettings, after: AgentSettings): LimitName[] {
  const edited = (was: AgentLimits = {}, is: AgentLimits = {}): LimitName[] =>
    LIMIT_NAMES.filter((name) => !isEditableLimit(name) && is[name] !== undefined && is[name] !== was[name])
  return [...edited(before.limits, after.limits), ...edited(before.together, after.together)]
}
/** In `tools`: all unnamed tools. */
export const ALL_TOOLS = '*'
/** In `tools`, next to the agent's tools: direct use of the sandbox by people. */
export const PERSON_TOOLS = ['terminal', 'exec'] as const
export type PersonTool = (typeof PERSON_TOOLS)[number]

/** Ids, or addresses, as they are stored. */
export const idList = z.array(z.string())

/** The subject of settings: an id, or the address of a person who has not signed in yet. */
export const settingsSubject = z.object({
  kind: z.enum(['team', 'person']),
  id: z.string().min(1).max(254),
})
export type SettingsSubject = z.infer<typeof settingsSubject>

/**
 * `GET /api/teams/:id/settings`, `GET /api/users/:id/settings` (administrators). `revision` 0:
 * nothing is set.
 */
export const settingsView = z.object({
  settings: agentSettings,
  revision: z.int().nonnegative(),
})
export type SettingsView = z.infer<typeof settingsView>
/**
 * `PUT` of the same → the `SettingsView`. Replaces all settings. `revision`: the one that the
 * administrator saw; if it has changed, `conflict` with the `SettingsView` as `current`.
 */
export const putSettingsRequest = settingsView

// ── What holds for a person
// ───────────────────────────────────────────────────────────────────────────

const teamOfSource = z.object({ id: z.string(), name: z.string() })
/** The source of a value. Several teams: their values are equal or merged. */
const settingSource = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('deployment') }),
  z.object({ kind: z.literal('teams'), teams: z.array(teamOfSource) }),
  z.object({ kind: z.literal('person') }),
])
export type SettingSource = z.infer<typeof settingSource>

function sourced<S extends z.ZodType>(value: S) {
  return z.object({ value, from: settingSource })
}
const limitValues = agentLimits.required()

/**
 * `GET /api/users/:id/effective` (administrators), and of oneself: every effective setting with its
 * source.
 */
export const effectiveSettingsView = z.object({
  modeCeiling: sourced(mode),
  tools: z.object({
    /** For unnamed tools; false: none. */
    all: sourced(z.boolean()),
    /** By tool id. */
    single: z.record(z.string(), sourced(z.boolean())),
  }),
  mcpServers: sourced(z.array(z.string())),
  ownServers: sourced(ownServers),
  models: sourced(z.array(z.string())),
  network: z.object({
    mode: sourced(z.enum(['none', 'egress'])),
    hosts: sourced(z.array(z.string())),
    ask: sourced(z.boolean()),
  }),
  limits: z.record(z.enum(LIMIT_NAMES), sourced(z.number())),
  /** Those of all teams, by name, then the person's. */
  instructions: z.array(sourced(z.string())),
})
export type EffectiveSettings = z.infer<typeof effectiveSettingsView>

/** Available choices: names of servers and models, ids of tools that belong to no server. */
export const offeredSettings = z.object({
  mcpServers: z.array(z.string()),
  models: z.array(z.string()),
  tools: z.array(z.string()),
})

/**
 * Response of `GET …/settings`: with it, the form shows the effective value of an unset setting.
 */
export const settingsAnswer = settingsView.extend({
  /** Effective settings without these. */
  without: effectiveSettingsView.optional(),
  offered: offeredSettings.optional(),
})
export type SettingsAnswer = z.infer<typeof settingsAnswer>

type Sourced<V> = { value: V; from: SettingSource }

/** Defaults of the deployment. */
export interface DeploymentSettings {
  /** False: no tools. */
  tools: boolean
  /** Names of the existing ones. */
  mcpServers: readonly string[]
  /** Names of the existing ones, the deployment's own first. */
  models: readonly string[]
  network: { mode: 'none' | 'egress'; hosts: readonly string[]; ask: boolean }
  limits: z.infer<typeof limitValues>
}

export interface TeamSettings {
  id: string
  name: string
  settings: AgentSettings
}

/**
 * Effective settings of a person in these teams. The order of the teams does not matter, and a team
 * without settings has no effect.
 */
export function effectiveSettings(
  deployment: DeploymentSettings,
  teams: readonly TeamSettings[],
  person: AgentSettings = {},
): EffectiveSettings {
  const sorted = teams.toSorted((a, b) => compare(a.name, b.name) || compare(a.id, b.id))
  const resolve = resolver(sorted, person)
  /** The named entries of the deployment's list, in its order. */
  const among = (there: readonly string[], pick: (settings: AgentSettings) => string[] | undefined) => {
    const { value, from } = resolve([...there], pick, (said) => said.flat())
    const named = new Set(value)
    return { value: there.filter((name) => named.has(name)), from }
  }
  const models = among(deployment.models, ({ models: set }) => set)
  return {
    modeCeiling: resolve(
      MODES.at(-1) ?? 'yolo',
      ({ modeCeiling }) => modeCeiling,
      mostOf((value) => MODES.indexOf(value)),
    ),
    tools: {
      all: resolve(deployment.tools, (settings) => toolOf(settings, ALL_TOOLS), anyOf),
      single: Object.fromEntries(
        namedTools(sorted, person).map((id) => [
          id,
          resolve(false, (settings) => toolOf(settings, id), anyOf),
        ]),
      ),
    },
    mcpServers: among(deployment.mcpServers, ({ mcpServers }) => mcpServers),
    ownServers: resolve(
      'public',
      ({ ownServers: set }) => set,
      mostOf((value) => OWN_SERVERS.indexOf(value)),
    ),
    // A model that the operator has removed from the configuration is removed for all.
    models:
      models.value.length > 0
        ? models
        : { value: deployment.models.slice(0, 1), from: { kind: 'deployment' } },
    network: networkOf(deployment.network, resolve),
    limits: Object.fromEntries(
      LIMIT_NAMES.map((name) => [
        name,
        resolve(
          deployment.limits[name],
          ({ limits }) => limits?.[name],
          mostOf((value) => (value === 0 ? Infinity : value)),
        ),
      ]),
    ) as EffectiveSettings['limits'],
    instructions: instructionsOf(sorted, person),
  }
}

type Resolve = <V>(
  of: V,
  pick: (settings: AgentSettings) => V | undefined,
  join: (said: readonly V[]) => V,
) => Sourced<V>

/** `pick`: the value in the settings; `join`: merges the values of several teams. */
function resolver(teams: readonly TeamSettings[], person: AgentSettings): Resolve {
  return (of, pick, join) => {
    const own = pick(person)
    if (own !== undefined) return { value: own, from: { kind: 'person' } }
    const said = teams.flatMap(({ id, name, settings }) => {
      const value = pick(settings)
      return value === undefined ? [] : [{ id, name, value }]
    })
    if (said.length === 0) return { value: of, from: { kind: 'deployment' } }
    const value = join(said.map((team) => team.value))
    // All teams are sources of a merged list; only the most generous ones of a single value.
    const sources = Array.isArray(value) ? said : said.filter((team) => team.value === value)
    return { value, from: { kind: 'teams', teams: sources.map(({ id, name }) => ({ id, name })) } }
  }
}

const mostOf =
  <V>(rank: (value: V) => number) =>
  (said: readonly V[]): V =>
    said.reduce((most, value) => (rank(value) > rank(most) ? value : most))
const anyOf = mostOf<boolean>(Number)

function networkOf(network: DeploymentSettings['network'], resolve: Resolve): EffectiveSettings['network'] {
  return {
    mode: resolve(
      network.mode,
      (settings) => settings.network?.mode,
      mostOf((value) => (value === 'egress' ? 1 : 0)),
    ),
    hosts: resolve(
      [...network.hosts],
      (settings) => settings.network?.hosts,
      (said) => [...new Set(said.flat())].toSorted(compare),
    ),
    ask: resolve(network.ask, (settings) => settings.network?.ask, anyOf),
  }
}

function instructionsOf(teams: readonly TeamSettings[], person: AgentSettings): Sourced<string>[] {
  return [
    ...teams.flatMap(({ id, name, settings: { instructions = '' } }): Sourced<string>[] =>
      instructions === '' ? [] : [{ value: instructions, from: { kind: 'teams', teams: [{ id, name }] } }],
    ),
    ...(person.instructions ? [{ value: person.instructions, from: { kind: 'person' as const } }] : []),
  ]
}

/** Named tools. A person with `false` gets none of their teams' tools. */
function namedTools(teams: readonly TeamSettings[], person: AgentSettings): string[] {
  const given = (settings: AgentSettings): string[] => Object.keys(toolsByName(settings.tools))
  const none = toolOf(person, ALL_TOOLS) === false
  const ofTeams = none ? [] : teams.flatMap(({ settings }) => given(settings))
  return [...new Set([...ofTeams, ...given(person)])].filter((id) => id !== ALL_TOOLS).toSorted(compare)
}

function toolOf({ tools }: AgentSettings, id: string): boolean | undefined {
  const named = toolsByName(tools)
  return Object.hasOwn(named, id) ? named[id] : undefined
}

/** Converts a value for all tools into the form by name. */
export function toolsByName(tools: AgentSettings['tools']): Readonly<Record<string, boolean>> {
  return typeof tools === 'boolean' ? { [ALL_TOOLS]: tools } : (tools ?? {})
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
