import type { RemovedData } from '@sandlot/shared/api'
import { useId, useState } from 'react'
import { useSubmit } from '../../auth/use-submit.ts'
import { removePerson } from '../../net/routes.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { Field } from '../../ui/field.tsx'
import { Spinner } from '../../ui/spinner.tsx'

const GOES = 'For good, with what MCP servers keep for them, as soon as what runs has ended.'

const CHOICES: { data: RemovedData; title: string; text: string }[] = [
  {
    data: 'keep',
    title: 'Keep files and chats',
    text: 'Nobody can open them here; they can be deleted later.',
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
  onDone: () => void
  onLeave: () => void
}) {
  const { person, removedBefore } = props
  const title = removedBefore ? `Delete files and chats of ${person.name}` : `Remove ${person.name}`
  const group = useId()
  const [data, setData] = useState<RemovedData | null>(removedBefore ? 'purge' : null)
  const [typed, setTyped] = useState('')
  const { busy, problem, onSubmit } = useSubmit(async () => {
    if (data === null) return
    await removePerson(person.id, data)
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
            Their sign-ins and API keys end at once. As soon as the agent is reached, what runs is stopped and
            their secrets are deleted.
          </p>
          <fieldset className="flex flex-col gap-2">
            <legend className="mb-2 text-sm font-medium">What becomes of their files and chats?</legend>
            {CHOICES.map((choice) => (
              <label key={choice.data} className="flex items-start gap-2.5 text-sm">
                <input
                  type="radio"
                  name={group}
                  className="mt-0.5 accent-accent"
                  checked={data === choice.data}
                  onChange={() => setData(choice.data)}
                />
                <span>
                  {choice.title}
                  <span className="block text-xs text-muted">{choice.text}</span>
                </span>
              </label>
            ))}
          </fieldset>
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
