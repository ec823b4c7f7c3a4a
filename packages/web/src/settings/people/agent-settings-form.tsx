/** Agent settings of one team or one person, with the value that holds where nothing is set. */
import {
  agentSettings,
  type AgentSettings,
  LIMIT_NAMES,
  PERSON_TOOLS,
  TEAM_LIMIT_NAMES,
  type SettingsAnswer,
  type SettingSource,
  type SettingsSubject,
  type SettingsView,
  settingsView,
  OWN_SERVERS,
  type OwnServers,
} from '@sandlot/shared/account/agent-settings'
import { messageOf } from '@sandlot/shared/base/errors'
import { MODES, type Mode } from '@sandlot/shared/chat/mode'
import { type SubmitEvent, useEffect, useState } from 'react'
import { ApiError } from '../../net/http.ts'
import { fetchSettings, saveSettings } from '../../net/teams.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { INPUT } from '../../ui/field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { cn } from '../../lib/cn.ts'
import { splitTools, withPersonTools } from './person-tools.ts'
import { Choice, LimitField, Lines, Names, Setting } from './setting-fields.tsx'
import {
  differences,
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

/** `onSaved`: what holds for people may be another now. */
export function AgentSettingsForm(props: { subject: SettingsSubject; onSaved?: () => void }) {
  const { kind, id } = props.subject
  const [answer, setAnswer] = useState<SettingsAnswer | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [tries, setTries] = useState(0)
  useEffect(() => {
    let left = false
    fetchSettings({ kind, id }).then(
      (now) => !left && setAnswer(now),
      (error: unknown) => !left && setProblem(messageOf(error)),
    )
    return () => {
      left = true
    }
  }, [kind, id, tries])
  if (problem !== null)
    return (
      <Alert>
        <p>{problem}</p>
        <Button
          size="sm"
          className="mt-2"
          onClick={() => {
            setProblem(null)
            setTries(tries + 1)
          }}
        >
          Try again
        </Button>
      </Alert>
    )
  if (answer === null) return <Waits className="h-230" />
  return <Loaded subject={props.subject} answer={answer} onSaved={props.onSaved} />
}

/** While something comes that will be about this high. */
export function Waits(props: { className: string }) {
  return (
    <div className={props.className}>
      <Spinner className="size-4 text-faint" />
    </div>
  )
}

function Loaded(props: {
  subject: SettingsSubject
  answer: SettingsAnswer
  onSaved?: (() => void) | undefined
}) {
  const { without, offered } = props.answer
  const [saved, setSaved] = useState<SettingsView>(props.answer)
  const [draft, setDraft] = useState<AgentSettings>(props.answer.settings)
  const [conflict, setConflict] = useState<SettingsView | null>(null)
  const [state, setState] = useState<'idle' | 'busy' | 'saved'>('idle')
  const [problem, setProblem] = useState<string | null>(null)
  const set = (change: Partial<AgentSettings>) => {
    setDraft(withoutUndefined({ ...draft, ...change }))
    setState('idle')
  }
  const network = draft.network ?? {}
  const { agentTools, personTools } = splitTools(draft.tools)
  const setNetwork = (change: Partial<Network>) => {
    const next = withoutUndefined({ ...network, ...change })
    set({ network: Object.keys(next).length === 0 ? undefined : next })
  }
  const keep = (view: SettingsView) => {
    setSaved(view)
    setDraft(view.settings)
    setConflict(null)
  }
  const save = async (revision: number) => {
    const checked = agentSettings.safeParse(draft)
    if (!checked.success)
      return setProblem(checked.error.issues[0]?.message ?? 'Something here is not right.')
    setState('busy')
    setProblem(null)
    try {
      keep(await saveSettings(props.subject, { settings: checked.data, revision }))
      setState('saved')
      props.onSaved?.()
    } catch (error) {
      setState('idle')
      const theirs = error instanceof ApiError ? settingsView.safeParse(error.current).data : undefined
      if (theirs === undefined) setProblem(messageOf(error))
      else setConflict(theirs)
    }
  }
  const dirty = JSON.stringify(draft) !== JSON.stringify(saved.settings)
  const hint = <V,>(sourced: { value: V; from: SettingSource } | undefined, words: (value: V) => string) =>
    sourced === undefined
      ? 'Without it, what holds otherwise.'
      : `Without it: ${words(sourced.value)} (${sourceWords(sourced.from)}).`
  return (
    <form
      aria-label="What the agent may do"
      className="flex flex-col gap-3"
      onSubmit={(event: SubmitEvent<HTMLFormElement>) => {
        event.preventDefault()
        void save(saved.revision)
      }}
    >
      <div className="divide-y divide-line rounded-lg border border-line">
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
          title="MCP servers of their own"
          hint={hint(without?.ownServers, (value) => OWN_SERVER_WORDS[value])}
          on={draft.ownServers !== undefined}
          onSet={(on) => set({ ownServers: on ? (without?.ownServers.value ?? 'none') : undefined })}
        >
          <Choice
            label="MCP servers of their own"
            value={draft.ownServers ?? 'none'}
            choices={OWN_SERVERS.map((value): [OwnServers, string] => [value, OWN_SERVER_WORDS[value]])}
            onChange={(ownServers) => set({ ownServers })}
          />
        </Setting>
        <Setting
          title="Tools"
          hint={hint(without?.tools.all, (value) => (value ? 'all of this Sandlot' : 'none'))}
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
        <Setting
          title="Network of the sandbox"
          hint={hint(without?.network.mode, (value) => (value === 'egress' ? 'listed hosts' : 'none'))}
          on={network.mode !== undefined}
          onSet={(on) => setNetwork({ mode: on ? (without?.network.mode.value ?? 'none') : undefined })}
        >
          <Choice
            label="Network of the sandbox"
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
        <fieldset className="p-3">
          <legend className="contents text-sm font-medium">
            {props.subject.kind === 'team' ? 'Limits of each of them' : 'Limits'}
          </legend>
          <p className="mt-0.5 text-xs text-muted">
            0 is no limit; empty: what is written in the field holds.
          </p>
          <div className="mt-3 grid gap-x-4 gap-y-3 sm:grid-cols-2">
            {LIMIT_NAMES.map((name) => (
              <LimitField
                key={name}
                label={LIMIT_WORDS[name]}
                value={draft.limits?.[name]}
                step={name.startsWith('cost') ? 'any' : 1}
                without={without === undefined ? 'not set' : limitWords(without.limits[name].value)}
                onChange={(value) => {
                  const limits = withoutUndefined({ ...draft.limits, [name]: value })
                  set({ limits: Object.keys(limits).length === 0 ? undefined : limits })
                }}
              />
            ))}
          </div>
        </fieldset>
        {props.subject.kind === 'team' && (
          <fieldset className="p-3">
            <legend className="contents text-sm font-medium">Limits of all of them together</legend>
            <p className="mt-0.5 text-xs text-muted">
              What the members use up is added up. 0 and empty are no limit.
            </p>
            <div className="mt-3 grid gap-x-4 gap-y-3 sm:grid-cols-2">
              {TEAM_LIMIT_NAMES.map((name) => (
                <LimitField
                  key={name}
                  label={TEAM_LIMIT_WORDS[name]}
                  value={draft.together?.[name]}
                  step={name.startsWith('cost') ? 'any' : 1}
                  without="no limit"
                  onChange={(value) => {
                    const together = withoutUndefined({ ...draft.together, [name]: value })
                    set({ together: Object.keys(together).length === 0 ? undefined : together })
                  }}
                />
              ))}
            </div>
          </fieldset>
        )}
        <Setting
          title="Instructions"
          hint="Followed besides those of this Sandlot, and of other teams."
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
      </div>
      {problem !== null && <Alert>{problem}</Alert>}
      {conflict !== null && (
        <Conflict
          mine={draft}
          theirs={conflict.settings}
          onTheirs={() => keep(conflict)}
          onMine={() => void save(conflict.revision)}
        />
      )}
      <div className="flex items-center justify-end gap-3">
        <p role="status" className="text-sm text-muted">
          {state === 'saved' && 'Saved. It holds from the next message on.'}
        </p>
        <Button
          disabled={!dirty || state === 'busy'}
          onClick={() => {
            keep(saved)
            setProblem(null)
          }}
        >
          Discard
        </Button>
        <Button type="submit" variant="primary" disabled={!dirty || state === 'busy'}>
          {state === 'busy' && <Spinner />} Save
        </Button>
      </div>
    </form>
  )
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as T
}

/** Another administrator was first: both are shown, and one is chosen. */
function Conflict(props: {
  mine: AgentSettings
  theirs: AgentSettings
  onTheirs: () => void
  onMine: () => void
}) {
  return (
    <div role="alert" className="rounded-lg border border-waiting-line bg-waiting-wash p-3">
      <p className="text-sm font-medium">Another administrator changed this meanwhile.</p>
      <div className="mt-2 overflow-x-auto" tabIndex={0} role="group" aria-label="What differs">
        <table className="w-full text-left text-sm">
          <thead>
            <tr className="text-xs text-muted">
              <th scope="col" className="py-1 pr-4 font-medium">
                Setting
              </th>
              <th scope="col" className="py-1 pr-4 font-medium">
                Theirs
              </th>
              <th scope="col" className="py-1 font-medium">
                Yours
              </th>
            </tr>
          </thead>
          <tbody>
            {differences(props.mine, props.theirs).map(({ name, mine, theirs }) => (
              <tr key={name} className="align-top">
                <th scope="row" className="py-1 pr-4 font-normal">
                  {name}
                </th>
                <td className="py-1 pr-4 [overflow-wrap:anywhere]">{theirs}</td>
                <td className="py-1 [overflow-wrap:anywhere]">{mine}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className="mt-3 flex flex-wrap gap-2">
        <Button size="sm" onClick={props.onTheirs}>
          Take theirs
        </Button>
        <Button size="sm" onClick={props.onMine}>
          Save mine over it
        </Button>
      </div>
    </div>
  )
}
