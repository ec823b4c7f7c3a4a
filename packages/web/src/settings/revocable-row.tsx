import type { ReactNode } from 'react'
import { Button } from '../ui/button.tsx'

/**
 * One thing that is kept, and the way to be rid of it. `act` and `name` make the accessible name:
 * “Revoke nightly”; `label` is that name where the two alone are no sentence.
 */
export function RevocableRow(props: {
  name: string
  title: ReactNode
  detail: ReactNode
  act: string
  label?: string
  busy: boolean
  onAct: () => void
}) {
  return (
    <li className="flex items-center gap-3 py-2 pr-2 pl-3">
      <span className="min-w-0 flex-1">
        {props.title}
        <span className="block text-xs text-muted">{props.detail}</span>
      </span>
      <Button
        size="sm"
        variant="danger"
        disabled={props.busy}
        aria-label={props.label ?? `${props.act} ${props.name}`}
        onClick={props.onAct}
      >
        {props.act}
      </Button>
    </li>
  )
}
