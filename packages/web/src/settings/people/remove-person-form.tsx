import type { RemovedData } from '@sandlot/shared/account/api'
import { useId, useState } from 'react'
import { useSubmit } from '../../auth/use-submit.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { Field, INPUT } from '../../ui/field.tsx'
import { Spinner } from '../../ui/spinner.tsx'

const GOES = 'Permanently, including their MCP server data, once running work has ended.'

const CHOICES: { data: RemovedData; title: string; text: string }[] = [
  {
    data: 'keep',
    title: 'Keep files and chats',
    text: 'Nobody can open them; you can delete them later.',
  },
  { data: 'purge', title: 'Delete files and chats', text: GOES },
]

/**
 * Nothing is chosen beforehand, and the name is typed: what goes does not come back.
 * `removedBefore`: only files and chats are left.
 */
export function RemovePersonForm(props: {
  person: { id: string; name: string }
  removedBefore: boolean
  /** To whom chats that they share can go. */
  heirs?: readonly { id: string; name: string; email: string }[]
  onDone: () => void
  onLeave: () => void
}) {
  const { person, removedBefore, heirs = [] } = props
  const title = removedBefore ? `Delete files and chats of ${person.name}` : `Remove ${person.name}`
  const [data, setData] = useState<RemovedData | null>(removedBefore ? 'purge' : null)
  const [heir, setHeir] = useState('')
  const [typed, setTyped] = useState('')
  const { busy, problem, onSubmit } = useSubmit(async () => {
    if (data === null) return
    await call('removeUser', {
      params: { id: person.id },
      query: { data, handOver: heir === '' ? undefined : heir },
    })
    props.onDone()
  })
  return (
    <form aria-label={title} onSubmit={onSubmit} className="flex flex-col gap-4">
      {problem !== null && <Alert>{problem}</Alert>}
      {removedBefore ? (
        <div>
          <p className="text-sm font-medium break-words">{title}</p>
          <p className="text-sm text-muted">{GOES}</p>
        </div>
      ) : (
        <>
          <p className="text-sm text-muted">
            Their sign-ins and API keys end immediately. Running work is stopped and their secrets are deleted
            once the agent responds.
          </p>
          <DataChoice chosen={data} onChoose={setData} />
          <HeirChoice heir={heir} heirs={heirs} onChoose={setHeir} />
        </>
      )}
      <Field
        label={`Type “${person.name}” to confirm`}
        value={typed}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => setTyped(event.target.value)}
      />
      <div className="flex justify-end gap-2">
        <Button onClick={props.onLeave}>Cancel</Button>
        <Button
          type="submit"
          variant="danger"
          disabled={busy || data === null || typed.trim() !== person.name.trim()}
        >
          {busy && <Spinner />} {removedBefore ? 'Delete files and chats' : 'Remove this person'}
        </Button>
      </div>
    </form>
  )
}

function HeirChoice(props: {
  heir: string
  heirs: readonly { id: string; name: string; email: string }[]
  onChoose: (heir: string) => void
}) {
  return (
    <label className="flex flex-col gap-1.5 text-sm font-medium">
      Chats they share
      <select className={INPUT} value={props.heir} onChange={(event) => props.onChoose(event.target.value)}>
        <option value="">End for everybody</option>
        {props.heirs.map(({ id, name, email }) => (
          <option key={id} value={id}>
            Go to {name} ({email})
          </option>
        ))}
      </select>
    </label>
  )
}

function DataChoice(props: { chosen: RemovedData | null; onChoose: (data: RemovedData) => void }) {
  const group = useId()
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="mb-2 text-sm font-medium">Their files and chats</legend>
      {CHOICES.map((choice) => (
        <label key={choice.data} className="flex items-start gap-2.5 text-sm">
          <input
            type="radio"
            name={group}
            className="mt-0.5 accent-accent"
            checked={props.chosen === choice.data}
            onChange={() => props.onChoose(choice.data)}
          />
          <span>
            {choice.title}
            <span className="block text-xs text-muted">{choice.text}</span>
          </span>
        </label>
      ))}
    </fieldset>
  )
}
