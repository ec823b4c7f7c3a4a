import { type Removal, REMOVAL_HELP } from '@sandlot/shared/account/api'
import { useState } from 'react'
import { formatDate } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { RevocableRow } from '../revocable-row.tsx'
import { useAttempt } from '../../lib/use-attempt.ts'
import { RemovePersonForm } from './remove-person-form.tsx'

/** Those whose files and chats are still here, or whose removal is under way. */
export function RemovedPeople(props: { removed: readonly Removal[]; onChanged: () => void }) {
  const [purging, setPurging] = useState<string | null>(null)
  return (
    <div>
      <h2 className="mb-2 text-base font-semibold">Removed</h2>
      <ul aria-label="Removed people" className="divide-y divide-line rounded-lg border border-line">
        {props.removed.flatMap((person) => [
          <RemovedLine
            key={person.id}
            person={person}
            onPurge={() => setPurging(person.id)}
            onAgain={async () => {
              await call('removeUser', { params: { id: person.id }, query: { data: person.data } })
              props.onChanged()
            }}
          />,
          purging === person.id && (
            <li key={`purge ${person.id}`} className="p-3">
              <RemovePersonForm
                person={person}
                removedBefore
                onDone={() => {
                  setPurging(null)
                  props.onChanged()
                }}
                onLeave={() => setPurging(null)}
              />
            </li>
          ),
        ])}
      </ul>
    </div>
  )
}

/** A removed person: what is under way, what prevents it, or what was kept. */
function RemovedLine(props: { person: Removal; onPurge: () => void; onAgain: () => Promise<void> }) {
  const { name, email, removedAt, done, problem } = props.person
  const again = useAttempt()
  const title = <span className="block truncate text-sm font-medium">{name}</span>
  if (!done)
    return (
      <li className="py-2 pr-2 pl-3">
        {title}
        <span role="status" className="block text-xs text-muted">
          {email} · signed out; stopping their work…
        </span>
        {problem !== null && (
          <div className="mt-2">
            <Alert>
              <p>Pending: {problem}</p>
              <p className="mt-1">{REMOVAL_HELP}</p>
              <Button
                className="mt-2"
                size="sm"
                disabled={again.busy}
                aria-label={`Retry: ${name}`}
                onClick={() => void again.attempt(props.onAgain)}
              >
                Retry
              </Button>
              {again.problem !== null && <p className="mt-1">{again.problem}</p>}
            </Alert>
          </div>
        )}
      </li>
    )
  const detail = `${email} · removed ${formatDate(removedAt)}, files and chats kept`
  return (
    <RevocableRow
      name={name}
      title={title}
      detail={detail}
      act="Delete files and chats"
      label={`Delete files and chats of ${name}`}
      busy={false}
      onAct={props.onPurge}
    />
  )
}
