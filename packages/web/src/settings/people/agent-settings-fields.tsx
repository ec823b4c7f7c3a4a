/** Groups of agent settings: models, MCP servers, tools, network, limits, instructions. */
import {
  type AgentSettings,
  isEditableLimit,
  LIMIT_NAMES,
  type LimitName,
  OWN_SERVERS,
  type OwnServers,
  PERSON_TOOLS,
  type SettingsAnswer,
  type SettingSource,
  TEAM_LIMIT_NAMES,
} from '@sandlot/shared/account/agent-settings'
import { MODES, type Mode } from '@sandlot/shared/chat/mode'
import { cn } from '../../lib/cn.ts'
import { INPUT } from '../../ui/field.tsx'
import { splitTools, withPersonTools } from './person-tools.ts'
import { Choice, LegacyLimit, LimitField, Lines, Names, Setting } from './setting-fields.tsx'
import {
  LIMIT_WORDS,
  limitWords,
  listWords,
  MODE_WORDS,
  OWN_SERVER_WORDS,
  PERSON_TOOL_WORDS,
  sourceWords,
  TEAM_LIMIT_WORDS,
} from './setting-words.ts'
import { Tools } from './tool-settings.tsx'

type Network = NonNullable<AgentSettings['network']>

interface FieldsProps {
  draft: AgentSettings
  /** Settings that hold where the draft has none. */
  without: SettingsAnswer['without']
  offered: SettingsAnswer['offered']
  set: (change: Partial<AgentSettings>) => void
}

export function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as T
}

function hint<V>(sourced: { value: V; from: SettingSource } | undefined, words: (value: V) => string) {
  return sourced === undefined
    ? 'Inherited.'
    : `Inherited: ${words(sourced.value)} (${sourceWords(sourced.from)}).`
}

export function ModelFields({ draft, without, offered, set }: FieldsProps) {
  return (
    <>
      <Setting
        title="Highest mode"
        hint={hint(without?.modeCeiling, (value) => MODE_WORDS[value])}
        on={draft.modeCeiling !== undefined}
        onSet={(on) => set({ modeCeiling: on ? (without?.modeCeiling.value ?? 'auto-edit') : undefined })}
      >
        <Choice
          label="Highest mode"
          value={draft.modeCeiling ?? 'manual'}
          choices={MODES.map((mode): [Mode, string] => [mode, MODE_WORDS[mode]])}
          onChange={(modeCeiling) => set({ modeCeiling })}
        />
      </Setting>
      <Setting
        title="Models"
        hint={hint(without?.models, listWords)}
        on={draft.models !== undefined}
        onSet={(on) => set({ models: on ? (without?.models.value ?? []) : undefined })}
      >
        <Names
          label="Models"
          offered={offered?.models ?? []}
          value={draft.models ?? []}
          onChange={(models) => set({ models })}
        />
      </Setting>
    </>
  )
}

export function ServerFields({ draft, without, offered, set }: FieldsProps) {
  return (
    <>
      <Setting
        title="MCP servers"
        hint={hint(without?.mcpServers, listWords)}
        on={draft.mcpServers !== undefined}
        onSet={(on) => set({ mcpServers: on ? (without?.mcpServers.value ?? []) : undefined })}
      >
        <Names
          label="MCP servers"
          offered={offered?.mcpServers ?? []}
          value={draft.mcpServers ?? []}
          onChange={(mcpServers) => set({ mcpServers })}
        />
      </Setting>
      <Setting
        title="Their own MCP servers"
        hint={hint(without?.ownServers, (value) => OWN_SERVER_WORDS[value])}
        on={draft.ownServers !== undefined}
        onSet={(on) => set({ ownServers: on ? (without?.ownServers.value ?? 'none') : undefined })}
      >
        <Choice
          label="Their own MCP servers"
          value={draft.ownServers ?? 'none'}
          choices={OWN_SERVERS.map((value): [OwnServers, string] => [value, OWN_SERVER_WORDS[value]])}
          onChange={(ownServers) => set({ ownServers })}
        />
      </Setting>
    </>
  )
}

export function ToolFields({ draft, without, offered, set }: FieldsProps) {
  const { agentTools, personTools } = splitTools(draft.tools)
  return (
    <>
      <Setting
        title="Tools"
        hint={hint(without?.tools.all, (value) => (value ? 'all' : 'none'))}
        on={agentTools !== undefined}
        onSet={(on) => set({ tools: withPersonTools(on ? {} : undefined, personTools) })}
      >
        <Tools
          value={agentTools ?? {}}
          offered={(offered?.tools ?? []).filter((id) => !PERSON_TOOLS.some((own) => own === id))}
          onChange={(tools) => set({ tools: withPersonTools(tools, personTools) })}
        />
      </Setting>
      {PERSON_TOOLS.map((id) => (
        <Setting
          key={id}
          title={PERSON_TOOL_WORDS[id]}
          hint={hint(without?.tools.single[id] ?? without?.tools.all, (value) =>
            value ? 'allowed' : 'switched off',
          )}
          on={personTools[id] !== undefined}
          onSet={(on) =>
            set({ tools: withPersonTools(agentTools, { ...personTools, [id]: on ? false : undefined }) })
          }
        >
          <Choice
            label={PERSON_TOOL_WORDS[id]}
            value={personTools[id] === true ? 'on' : 'off'}
            choices={[
              ['off', 'Switched off'],
              ['on', 'Allowed'],
            ]}
            onChange={(chosen) =>
              set({ tools: withPersonTools(agentTools, { ...personTools, [id]: chosen === 'on' }) })
            }
          />
        </Setting>
      ))}
    </>
  )
}

export function NetworkFields({ draft, without, set }: FieldsProps) {
  const network = draft.network ?? {}
  const setNetwork = (change: Partial<Network>) => {
    const next = withoutUndefined({ ...network, ...change })
    set({ network: Object.keys(next).length === 0 ? undefined : next })
  }
  return (
    <>
      <Setting
        title="Sandbox network"
        hint={hint(without?.network.mode, (value) => (value === 'egress' ? 'listed hosts' : 'none'))}
        on={network.mode !== undefined}
        onSet={(on) => setNetwork({ mode: on ? (without?.network.mode.value ?? 'none') : undefined })}
      >
        <Choice
          label="Sandbox network"
          value={network.mode ?? 'none'}
          choices={[
            ['none', 'None'],
            ['egress', 'Listed hosts'],
          ]}
          onChange={(mode) => setNetwork({ mode })}
        />
      </Setting>
      <Setting
        title="Hosts"
        hint={hint(without?.network.hosts, listWords)}
        on={network.hosts !== undefined}
        onSet={(on) => setNetwork({ hosts: on ? (without?.network.hosts.value ?? []) : undefined })}
      >
        <Lines
          label="Hosts, one a line"
          placeholder={'package-registries\n*.example.org'}
          value={network.hosts ?? []}
          onChange={(hosts) => setNetwork({ hosts })}
        />
      </Setting>
      <Setting
        title="The agent may ask for more hosts"
        hint={hint(without?.network.ask, (value) => (value ? 'yes' : 'no'))}
        on={network.ask !== undefined}
        onSet={(on) => setNetwork({ ask: on ? (without?.network.ask.value ?? false) : undefined })}
      >
        <Choice
          label="The agent may ask for more hosts"
          value={network.ask === true ? 'yes' : 'no'}
          choices={[
            ['yes', 'Yes'],
            ['no', 'No'],
          ]}
          onChange={(ask) => setNetwork({ ask: ask === 'yes' })}
        />
      </Setting>
    </>
  )
}

/** `title`: of the group. */
export function LimitFields({ title, draft, without, set }: FieldsProps & { title: string }) {
  return (
    <LimitGroup
      title={title}
      hint="0 means no limit. Leave empty to inherit."
      names={LIMIT_NAMES}
      words={LIMIT_WORDS}
      limits={draft.limits}
      without={(name) => (without === undefined ? 'not set' : limitWords(without.limits[name].value))}
      set={(limits) => set({ limits })}
    />
  )
}

export function TeamLimitFields({ draft, set }: FieldsProps) {
  return (
    <LimitGroup
      title="Combined limits"
      hint="Shared by all members. 0 or empty means no limit."
      names={TEAM_LIMIT_NAMES}
      words={TEAM_LIMIT_WORDS}
      limits={draft.together}
      without={() => 'no limit'}
      set={(together) => set({ together })}
    />
  )
}

type Limits<Name extends LimitName> = Partial<Record<Name, number | undefined>>

function LimitGroup<Name extends LimitName>(props: {
  title: string
  hint: string
  names: readonly Name[]
  words: Record<Name, string>
  limits: Limits<Name> | undefined
  /** Text for a limit that is not set. */
  without: (name: Name) => string
  set: (limits: Limits<Name> | undefined) => void
}) {
  const { names, words, limits, without, set } = props
  const change = (name: Name, value: number | undefined): void => {
    const next = withoutUndefined({ ...limits, [name]: value })
    set(Object.keys(next).length === 0 ? undefined : next)
  }
  return (
    <fieldset className="p-3">
      <legend className="contents text-sm font-medium">{props.title}</legend>
      <p className="mt-0.5 text-xs text-muted">{props.hint}</p>
      <div className="mt-3 grid gap-x-4 gap-y-3 sm:grid-cols-6">
        {names.filter(isEditableLimit).map((name) => (
          // Three per message in a row, then those of a day and of a month in pairs.
          <div key={name} className={name.includes('Per') ? 'sm:col-span-3' : 'sm:col-span-2'}>
            <LimitField
              label={words[name]}
              value={limits?.[name]}
              step={name.startsWith('cost') ? 'any' : 1}
              without={without(name)}
              onChange={(changed) => change(name, changed)}
            />
          </div>
        ))}
      </div>
      {names.map((name) => {
        const value = limits?.[name]
        if (isEditableLimit(name) || value === undefined) return null
        return (
          <LegacyLimit
            key={name}
            label={words[name]}
            value={value}
            onRemove={() => change(name, undefined)}
          />
        )
      })}
    </fieldset>
  )
}

export function InstructionsField({ draft, set }: FieldsProps) {
  return (
    <Setting
      title="Instructions"
      hint="Added to the deployment’s and other teams’ instructions."
      on={draft.instructions !== undefined}
      onSet={(on) => set({ instructions: on ? '' : undefined })}
    >
      <textarea
        dir="auto"
        aria-label="Instructions"
        className={cn(INPUT, 'h-28 resize-y py-2')}
        value={draft.instructions ?? ''}
        onChange={({ target }) => set({ instructions: target.value })}
      />
    </Setting>
  )
}
