/** Agent settings as text. Pure. */
import type {
  AgentSettings,
  EffectiveSettings,
  SettingSource,
  OwnServers,
} from '@sandlot/shared/account/agent-settings'
import {
  isEditableLimit,
  LIMIT_NAMES,
  type LimitName,
  PERSON_TOOLS,
  type PersonTool,
  TEAM_LIMIT_NAMES,
  type TeamLimitName,
} from '@sandlot/shared/account/agent-settings'
import type { Mode } from '@sandlot/shared/chat/mode'

export const MODE_WORDS: Record<Mode, string> = {
  manual: 'Manual: reads run, everything else asks',
  'auto-edit': 'Auto-edit: file edits run too',
  auto: 'Auto: commands run too if there’s no network',
  yolo: 'YOLO: everything runs unless a rule denies it',
}

export const OWN_SERVER_WORDS: Record<OwnServers, string> = {
  none: 'none',
  public: 'public addresses, and programs in the sandbox',
  local: 'also on the server’s network',
}

export const LIMIT_WORDS: Record<LimitName, string> = {
  turns: 'Model answers per message',
  calls: 'Calls per message',
  tokens: 'Tokens per message',
  cost: 'US dollars per message',
  promptSeconds: 'Seconds per message',
  turnsPerDay: 'Model answers a day',
  callsPerDay: 'Calls a day',
  tokensPerDay: 'Tokens a day',
  costPerDay: 'US dollars a day',
  secondsPerDay: 'Seconds a day',
  turnsPerMonth: 'Model answers a month',
  callsPerMonth: 'Calls a month',
  tokensPerMonth: 'Tokens a month',
  costPerMonth: 'US dollars a month',
  secondsPerMonth: 'Seconds a month',
}

export const TEAM_LIMIT_WORDS: Record<TeamLimitName, string> = {
  turnsPerDay: 'Model answers a day, all together',
  callsPerDay: 'Calls a day, all together',
  tokensPerDay: 'Tokens a day, all together',
  costPerDay: 'US dollars a day, all together',
  secondsPerDay: 'Seconds a day, all together',
  turnsPerMonth: 'Model answers a month, all together',
  callsPerMonth: 'Calls a month, all together',
  tokensPerMonth: 'Tokens a month, all together',
  costPerMonth: 'US dollars a month, all together',
  secondsPerMonth: 'Seconds a month, all together',
}

/** `Sandlot`, `team data`, `teams data and web`, `this person`. */
export function sourceWords(from: SettingSource): string {
  switch (from.kind) {
    case 'deployment':
      return 'deployment default'
    case 'person':
      return 'personal'
    case 'teams': {
      const names = from.teams.map(({ name }) => `“${name}”`)
      return `${names.length === 1 ? 'team' : 'teams'} ${names.join(', ')}`
    }
  }
}

export function listWords(values: readonly string[]): string {
  return values.length === 0 ? 'none' : values.join(', ')
}

/** Mark of a limit of the previous version that a team or a person still has. */
export const NOT_EDITABLE = 'no longer editable'

export function limitWords(value: number): string {
  return value === 0 ? 'no limit' : value.toLocaleString('en')
}

interface EffectiveRow {
  name: string
  value: string
  from: SettingSource
}

/** Tools that people use themselves in their sandboxes. */
export const PERSON_TOOL_WORDS: Record<PersonTool, string> = {
  terminal: 'Terminals',
  exec: 'Direct commands (exec)',
}

/** Every setting that holds for a person, in the order of the page. */
export function effectiveRows(effective: EffectiveSettings): EffectiveRow[] {
  const { modeCeiling, tools, mcpServers, ownServers, models, network, limits, instructions } = effective
  const egress = network.mode.value === 'egress'
  return [
    { name: 'Highest mode', value: MODE_WORDS[modeCeiling.value], from: modeCeiling.from },
    { name: 'Models', value: listWords(models.value), from: models.from },
    { name: 'MCP servers', value: listWords(mcpServers.value), from: mcpServers.from },
    { name: 'Their own MCP servers', value: OWN_SERVER_WORDS[ownServers.value], from: ownServers.from },
    { name: 'Tools', value: tools.all.value ? 'all' : 'none', from: tools.all.from },
    ...Object.entries(tools.single).map(([id, { value, from }]) => ({
      name: toolName(id),
      value: value ? 'allowed' : 'taken away',
      from,
    })),
    {
      name: 'Sandbox network',
      value: egress ? 'listed hosts' : 'none',
      from: network.mode.from,
    },
    ...(egress
      ? [
          { name: 'Hosts', value: listWords(network.hosts.value), from: network.hosts.from },
          {
            name: 'The agent may ask for more hosts',
            value: network.ask.value ? 'yes' : 'no',
            from: network.ask.from,
          },
        ]
      : []),
    ...LIMIT_NAMES.filter((name) => isEditableLimit(name) || limits[name].value > 0).map((name) => ({
      name: LIMIT_WORDS[name],
      value: `${limitWords(limits[name].value)}${isEditableLimit(name) ? '' : ` (${NOT_EDITABLE})`}`,
      from: limits[name].from,
    })),
    ...instructions.map(({ value, from }) => ({ name: 'Instructions', value, from })),
  ]
}

function toolName(id: string): string {
  const own = PERSON_TOOLS.find((one) => one === id)
  return own === undefined ? `Tool ${id}` : PERSON_TOOL_WORDS[own]
}

/** One line for each setting that is set. */
function settingRows(settings: AgentSettings): { name: string; value: string }[] {
  const { modeCeiling, tools, mcpServers, ownServers, models, network = {}, instructions } = settings
  const { limits = {}, together = {} } = settings
  const rows: [string, string | undefined][] = [
    ['Highest mode', modeCeiling && MODE_WORDS[modeCeiling]],
    ['Models', models && listWords(models)],
    ['MCP servers', mcpServers && listWords(mcpServers)],
    ['Their own MCP servers', ownServers && OWN_SERVER_WORDS[ownServers]],
    ['Tools', toolWords(tools)],
    ['Sandbox network', network.mode && (network.mode === 'egress' ? 'listed hosts' : 'none')],
    ['Hosts', network.hosts && listWords(network.hosts)],
    ['The agent may ask for more hosts', network.ask === undefined ? undefined : network.ask ? 'yes' : 'no'],
    ...LIMIT_NAMES.map((name): [string, string | undefined] => {
      const value = limits[name]
      return [LIMIT_WORDS[name], value === undefined ? undefined : limitWords(value)]
    }),
    ...TEAM_LIMIT_NAMES.map((name): [string, string | undefined] => {
      const value = together[name]
      return [TEAM_LIMIT_WORDS[name], value === undefined ? undefined : limitWords(value)]
    }),
    ['Instructions', instructions],
  ]
  return rows.flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }]))
}

function toolWords(tools: AgentSettings['tools']): string | undefined {
  if (tools === undefined) return undefined
  if (typeof tools === 'boolean') return tools ? 'all' : 'none'
  return listWords(Object.entries(tools).map(([id, on]) => `${id} ${on ? 'allowed' : 'taken away'}`))
}

/** Settings on which two administrators differ: rows of names with both values. */
export function differences(
  mine: AgentSettings,
  theirs: AgentSettings,
): { name: string; mine: string; theirs: string }[] {
  const [own, other] = [mine, theirs].map(
    (settings) => new Map(settingRows(settings).map(({ name, value }) => [name, value])),
  )
  const names = new Set([...(own?.keys() ?? []), ...(other?.keys() ?? [])])
  return [...names].flatMap((name) => {
    const [one, two] = [own?.get(name) ?? 'not set', other?.get(name) ?? 'not set']
    return one === two ? [] : [{ name, mine: one, theirs: two }]
  })
}
