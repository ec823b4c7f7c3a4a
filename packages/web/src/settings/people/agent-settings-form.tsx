/** Agent settings of one team or one person, with the value that holds where nothing is set. */
import {
  agentSettings,
  type AgentSettings,
  type SettingsAnswer,
  type SettingsSubject,
  type SettingsView,
  settingsView,
} from '@sandlot/shared/account/agent-settings'
import { messageOf } from '@sandlot/shared/base/errors'
import { type SubmitEvent, useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { call } from '../../net/call.ts'
import { currentOf } from '../../net/http.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import {
  InstructionsField,
  LimitFields,
  ModelFields,
  NetworkFields,
  ServerFields,
  TeamLimitFields,
  ToolFields,
  withoutUndefined,
} from './agent-settings-fields.tsx'
import { differences } from './setting-words.ts'

/** `onSaved`: what holds for people may be another now. */
export function AgentSettingsForm(props: { subject: SettingsSubject; onSaved?: () => void }) {
  const { kind, id } = props.subject
  const { data: answer, problem } = useResource(`${kind} ${id}`, (signal) =>
    call(kind === 'team' ? 'getTeamSettings' : 'getUserSettings', { params: { id }, signal }),
  )
  if (answer === null) return problem === null ? <Waits className="h-230" /> : <Alert>{problem}</Alert>
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

interface LoadedProps {
  subject: SettingsSubject
  answer: SettingsAnswer
  onSaved?: (() => void) | undefined
}

function Loaded(props: LoadedProps) {
  const isTeam = props.subject.kind === 'team'
  const { saved, draft, set, conflict, state, problem, keep, save, dirty, discard } = useSettingsDraft(props)
  const fields = { draft, set, without: props.answer.without, offered: props.answer.offered }
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
        <ModelFields {...fields} />
        <ServerFields {...fields} />
        <ToolFields {...fields} />
        <NetworkFields {...fields} />
        <LimitFields {...fields} title={isTeam ? 'Limits per member' : 'Limits'} />
        {isTeam && <TeamLimitFields {...fields} />}
        <InstructionsField {...fields} />
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
          {state === 'saved' && 'Saved. Applies from the next message.'}
        </p>
        <Button disabled={!dirty || state === 'busy'} onClick={discard}>
          Discard
        </Button>
        <Button type="submit" variant="primary" disabled={!dirty || state === 'busy'}>
          {state === 'busy' && <Spinner />} Save
        </Button>
      </div>
    </form>
  )
}

function useSettingsDraft(props: LoadedProps) {
  const [saved, setSaved] = useState<SettingsView>(props.answer)
  const [draft, setDraft] = useState<AgentSettings>(props.answer.settings)
  const [conflict, setConflict] = useState<SettingsView | null>(null)
  const [state, setState] = useState<'idle' | 'busy' | 'saved'>('idle')
  const [problem, setProblem] = useState<string | null>(null)
  const set = (change: Partial<AgentSettings>) => {
    setDraft(withoutUndefined({ ...draft, ...change }))
    setState('idle')
  }
  const keep = (view: SettingsView) => {
    setSaved(view)
    setDraft(view.settings)
    setConflict(null)
  }
  const save = async (revision: number) => {
    const checked = agentSettings.safeParse(draft)
    if (!checked.success) return setProblem(checked.error.issues[0]?.message ?? 'Check the fields below.')
    setState('busy')
    setProblem(null)
    try {
      const { kind, id } = props.subject
      const body = { settings: checked.data, revision }
      keep(await call(kind === 'team' ? 'putTeamSettings' : 'putUserSettings', { params: { id }, body }))
      setState('saved')
      props.onSaved?.()
    } catch (error) {
      setState('idle')
      const theirs = currentOf(error, settingsView)
      if (theirs === undefined) setProblem(messageOf(error))
      else setConflict(theirs)
    }
  }
  const dirty = JSON.stringify(draft) !== JSON.stringify(saved.settings)
  const discard = () => {
    keep(saved)
    setProblem(null)
  }
  return { saved, draft, set, conflict, state, problem, keep, save, dirty, discard }
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
      <p className="text-sm font-medium">Another administrator changed this while you were editing.</p>
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
          Use theirs
        </Button>
        <Button size="sm" onClick={props.onMine}>
          Overwrite with mine
        </Button>
      </div>
    </div>
  )
}
