import { REMOVAL_HELP, type Removal } from '@sandlot/shared/api'
import { formatDate } from '../lib/format.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { KeptLine } from './kept-line.tsx'
import { useAttempt } from './use-attempt.ts'

/** Somebody who was removed: what is under way, what keeps it from being done, or what was kept. */
export function RemovedLine(props: { person: Removal; onPurge: () => void; onAgain: () => Promise<void> }) {
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
