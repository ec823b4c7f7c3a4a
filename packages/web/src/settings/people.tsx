import { REMOVAL_HELP, type Account, type Removal, type UserList } from '@sandlot/shared/api'
import { UserPlus } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useChat } from '../chat/chat-context.ts'
import { fetchPeople, removePerson } from '../net/routes.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { AddPersonForm } from './add-person-form.tsx'
import { KeptLine } from './kept-line.tsx'
import { RemovePersonForm } from './remove-person-form.tsx'
import { useAttempt } from './use-attempt.ts'
import { formatDate } from '../lib/format.ts'

/** How often the list is fetched during a removal, in milliseconds. */
const LOOK_AGAIN_MS = 2_000

/** Everybody who may come in, and whose files are still here: for administrators. */
export function People() {
  const { me } = useChat()
  const [people, setPeople] = useState<UserList | null>(null)
  const [form, setForm] = useState<'add' | { remove: string } | null>(null)
  const { problem, attempt } = useAttempt()
  const asked = useRef(0)
  const reload = async () => {
    const turn = ++asked.current
    const now = await fetchPeople()
    // An answer that was overtaken by a later question shows what was.
    if (turn === asked.current) setPeople(now)
  }
  const underWay = people?.removed.some(({ done }) => !done) === true
  useEffect(() => {
    void attempt(reload)
    // Once; both only set state.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [])
  useEffect(() => {
    if (!underWay) return undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    let left = false
    const lookLater = () => {
      timer = setTimeout(() => void attempt(reload, 'again').then(() => !left && lookLater()), LOOK_AGAIN_MS)
    }
    lookLater()
    return () => {
      left = true
      clearTimeout(timer)
    }
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [underWay])
  const done = () => {
    setForm(null)
    void attempt(reload)
  }
  const removing = (person: Account | Removal, removedBefore: boolean) =>
    typeof form === 'object' &&
    form?.remove === person.id && (
      <li key={`remove ${person.id}`} className="p-3">
        <RemovePersonForm
          person={person}
          removedBefore={removedBefore}
          onDone={done}
          onLeave={() => setForm(null)}
        />
      </li>
    )
  return (
    <div className="flex flex-col gap-3">
      {problem !== null && <Alert>{problem}</Alert>}
      {people !== null && (
        <ul aria-label="People" className="divide-y divide-line rounded-lg border border-line">
          {people.users.flatMap((person) => [
            <PersonLine
              key={person.id}
              person={person}
              isMe={person.id === me.id}
              onRemove={() => setForm({ remove: person.id })}
            />,
            removing(person, false),
          ])}
        </ul>
      )}
      {form === 'add' ? (
        <AddPersonForm onDone={done} onLeave={() => setForm(null)} />
      ) : (
        <Button className="self-start" size="sm" onClick={() => setForm('add')}>
          <UserPlus className="size-3.5" aria-hidden /> Add a person
        </Button>
      )}
      {people !== null && people.removed.length > 0 && (
        <div>
          <h2 className="mb-2 text-sm font-semibold">Removed</h2>
          <ul aria-label="Removed people" className="divide-y divide-line rounded-lg border border-line">
            {people.removed.flatMap((person) => [
              <RemovedLine
                key={person.id}
                person={person}
                onPurge={() => setForm({ remove: person.id })}
                onAgain={() => removePerson(person.id, person.data).then(reload)}
              />,
              removing(person, true),
            ])}
          </ul>
        </div>
      )}
    </div>
  )
}

function PersonLine(props: { person: Account; isMe: boolean; onRemove: () => void }) {
  const { name, email, role } = props.person
  const title = <span className="block truncate text-sm font-medium">{name}</span>
  const detail = `${email}${role === 'admin' ? ' · Administrator' : ''}${props.isMe ? ' · you' : ''}`
  if (props.isMe)
    return (
      <li className="py-2 pr-2 pl-3">
        {title}
        <span className="block text-xs text-muted">{detail}</span>
      </li>
    )
  return (
    <KeptLine name={name} title={title} detail={detail} act="Remove" busy={false} onAct={props.onRemove} />
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
          {email} · signed out; what ran is being ended …
        </span>
        {problem !== null && (
          <div className="mt-2">
            <Alert>
              <p>Not done yet: {problem}</p>
              <p className="mt-1">{REMOVAL_HELP}</p>
              <Button
                className="mt-2"
                size="sm"
                disabled={again.busy}
                aria-label={`Try again now: ${name}`}
                onClick={() => void again.attempt(props.onAgain)}
              >
                Try again now
              </Button>
              {again.problem !== null && <p className="mt-1">{again.problem}</p>}
            </Alert>
          </div>
        )}
      </li>
    )
  const detail = `${email} · removed ${formatDate(removedAt)}, files and chats kept`
  return (
    <KeptLine
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
