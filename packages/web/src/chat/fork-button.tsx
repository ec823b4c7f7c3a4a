import { messageOf } from '@sandlot/shared/errors'
import { CircleAlert, Split } from 'lucide-react'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { forkSession } from '../net/fork.ts'
import { RecordLink } from './record-link.tsx'

/** Go on behind this message and its answer in a new chat; this one stays as it is. */
export function ForkButton(props: { sessionId: string; promptId: string }) {
  const [, navigate] = useLocation()
  const [state, setState] = useState<'idle' | 'busy' | { problem: string }>('idle')
  const fork = (): void => {
    setState('busy')
    forkSession(props.sessionId, props.promptId).then(
      (sessionId) => {
        setState('idle')
        navigate(`/s/${sessionId}`)
      },
      (error: unknown) => setState({ problem: messageOf(error) }),
    )
  }
  return (
    <div className="mt-1 flex min-h-7 items-center justify-end gap-1.5">
      {typeof state === 'object' && (
        <span role="alert" className="inline-flex items-center gap-1.5 text-xs text-failed">
          <CircleAlert className="size-3.5 shrink-0" aria-hidden /> {state.problem}
        </span>
      )}
      <RecordLink sessionId={props.sessionId} promptId={props.promptId} />
      <button
        type="button"
        disabled={state === 'busy'}
        onClick={fork}
        aria-label="Continue from here in a new chat"
        title="Continue from here in a new chat"
        className="inline-flex h-7 items-center rounded-md px-1.5 text-faint opacity-0 transition-opacity group-focus-within/message:opacity-100 group-hover/message:opacity-100 hover:bg-hover hover:text-ink pointer-coarse:opacity-100"
      >
        <Split className="size-3.5" aria-hidden />
      </button>
    </div>
  )
}
