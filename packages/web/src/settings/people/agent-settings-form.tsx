/** What is set for one team or one person, with what holds where nothing is set. */
import {
  agentSettings,
  type AgentSettings,
  LIMIT_NAMES,
  type SettingsAnswer,
  type SettingSource,
  type SettingsSubject,
  type SettingsView,
  settingsView,
} from '@sandlot/shared/team/agent-settings'
import { messageOf } from '@sandlot/shared/errors'
import { MODES, type Mode } from '@sandlot/shared/mode'
import { Plus, X } from 'lucide-react'
import { type ReactNode, type SubmitEvent, useEffect, useId, useState } from 'react'
import { ApiError } from '../../net/http.ts'
import { fetchSettings, saveSettings } from '../../net/teams.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { INPUT } from '../../ui/field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { cn } from '../../lib/cn.ts'
import { differences, LIMIT_WORDS, limitWords, listWords, MODE_WORDS, sourceWords } from './setting-words.ts'

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
          title="Tools"
          hint={hint(without?.tools.all, (value) => (value ? 'all of this Sandlot' : 'none'))}
          on={draft.tools !== undefined}
          onSet={(on) => set({ tools: on ? {} : undefined })}
        >
          <Tools value={draft.tools ?? {}} onChange={(tools) => set({ tools })} />
        </Setting>
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
          <legend className="contents text-sm font-medium">Limits</legend>
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

/** One setting: whether it is set here, what holds where it is not, and its value. */
function Setting(props: {
  title: string
  hint: string
  on: boolean
  onSet: (on: boolean) => void
  children: ReactNode
}) {
  const id = useId()
  return (
    <div className="p-3">
      <label className="flex items-start gap-2.5 pointer-coarse:min-h-11">
        <input
          type="checkbox"
          className="mt-0.5 size-4 shrink-0 accent-accent"
          checked={props.on}
          aria-labelledby={`${id}-title`}
          aria-describedby={id}
          onChange={({ target }) => props.onSet(target.checked)}
        />
        <span className="min-w-0">
          <span id={`${id}-title`} className="block text-sm font-medium">
            {props.title}
          </span>
          <span id={id} className="block text-xs text-muted [overflow-wrap:anywhere]">
            {props.hint}
          </span>
        </span>
      </label>
      {props.on && <div className="mt-2.5 pl-6.5">{props.children}</div>}
    </div>
  )
}

function Choice<V extends string>(props: {
  label: string
  value: V
  choices: readonly (readonly [V, string])[]
  onChange: (value: V) => void
}) {
  return (
    <select
      aria-label={props.label}
      className={INPUT}
      value={props.value}
      onChange={({ target }) => {
        const chosen = props.choices.find(([value]) => value === target.value)
        if (chosen !== undefined) props.onChange(chosen[0])
      }}
    >
      {props.choices.map(([value, words]) => (
        <option key={value} value={value}>
          {words}
        </option>
      ))}
    </select>
  )
}

/** Of a few names that there are; a name that is gone is shown while it is chosen. */
function Names(props: {
  label: string
  offered: readonly string[]
  value: string[]
  onChange: (value: string[]) => void
}) {
  const { offered, value, onChange } = props
  if (offered.length === 0)
    return <Lines label={`${props.label}, one a line`} value={value} onChange={onChange} />
  const all = [...offered, ...value.filter((name) => !offered.includes(name))]
  return (
    <div role="group" aria-label={props.label} className="grid gap-x-4 gap-y-1.5 sm:grid-cols-2">
      {all.map((name) => (
        <label key={name} className="flex min-h-7 items-center gap-2.5 text-sm pointer-coarse:min-h-11">
          <input
            type="checkbox"
            className="size-4 shrink-0 accent-accent"
            checked={value.includes(name)}
            onChange={({ target }) =>
              onChange(target.checked ? [...value, name] : value.filter((one) => one !== name))
            }
          />
          <span className="min-w-0 truncate">{name}</span>
          {!offered.includes(name) && <span className="text-xs text-muted">not there any more</span>}
        </label>
      ))}
    </div>
  )
}

function Lines(props: {
  label: string
  placeholder?: string
  value: readonly string[]
  onChange: (value: string[]) => void
}) {
  // What is typed stays as it is typed, also a line that is not finished.
  const [text, setText] = useState(props.value.join('\n'))
  return (
    <textarea
      aria-label={props.label}
      placeholder={props.placeholder}
      spellCheck={false}
      className={cn(INPUT, 'h-24 resize-y py-2 font-mono')}
      value={text}
      onChange={({ target }) => {
        setText(target.value)
        const lines = target.value.split('\n').map((line) => line.trim())
        props.onChange(lines.filter((line) => line !== ''))
      }}
    />
  )
}

type ToolSettings = NonNullable<AgentSettings['tools']>

function Tools(props: { value: ToolSettings; onChange: (value: ToolSettings) => void }) {
  const { value, onChange } = props
  const [name, setName] = useState('')
  const kind = typeof value === 'boolean' ? (value ? 'all' : 'none') : 'named'
  const named = typeof value === 'boolean' ? {} : value
  const add = () => {
    if (name.trim() === '') return
    onChange({ ...named, [name.trim()]: true })
    setName('')
  }
  return (
    <div className="flex flex-col gap-2">
      <Choice
        label="Tools"
        value={kind}
        choices={[
          ['named', 'Single tools'],
          ['none', 'None'],
          ['all', 'All of this Sandlot'],
        ]}
        onChange={(chosen) => onChange(chosen === 'named' ? {} : chosen === 'all')}
      />
      {kind === 'named' && (
        <>
          {Object.entries(named).map(([id, on]) => (
            <div key={id} className="flex items-center gap-2">
              <code className="min-w-0 flex-1 truncate text-xs">{id}</code>
              <select
                aria-label={`Tool ${id}`}
                className={cn(INPUT, 'w-36')}
                value={on ? 'on' : 'off'}
                onChange={({ target }) => onChange({ ...named, [id]: target.value === 'on' })}
              >
                <option value="on">Allowed</option>
                <option value="off">Taken away</option>
              </select>
              <IconButton
                label={`Say nothing about ${id}`}
                onClick={() =>
                  onChange(Object.fromEntries(Object.entries(named).filter(([one]) => one !== id)))
                }
              >
                <X aria-hidden />
              </IconButton>
            </div>
          ))}
          <div className="flex gap-2">
            <input
              aria-label="Tool to add"
              className={cn(INPUT, 'font-mono')}
              placeholder="run_shell_command"
              value={name}
              spellCheck={false}
              autoCapitalize="off"
              maxLength={256}
              onChange={({ target }) => setName(target.value)}
              onKeyDown={(event) => {
                if (event.key !== 'Enter') return
                event.preventDefault()
                add()
              }}
            />
            <Button className="h-10 pointer-coarse:h-11" disabled={name.trim() === ''} onClick={add}>
              <Plus className="size-4" aria-hidden /> Add
            </Button>
          </div>
        </>
      )}
    </div>
  )
}

function LimitField(props: {
  label: string
  value: number | undefined
  step: number | 'any'
  without: string
  onChange: (value: number | undefined) => void
}) {
  const id = useId()
  return (
    <div>
      <label htmlFor={id} className="text-xs text-muted">
        {props.label}
      </label>
      <input
        id={id}
        type="number"
        min={0}
        step={props.step}
        inputMode="decimal"
        className={cn(INPUT, 'mt-1')}
        placeholder={props.without}
        value={props.value ?? ''}
        onChange={({ target }) => props.onChange(target.value === '' ? undefined : Number(target.value))}
      />
    </div>
  )
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
