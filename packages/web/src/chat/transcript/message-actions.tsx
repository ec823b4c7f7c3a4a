/** Actions on a person's message: copy, edit, fork, report; and which version of it is shown. */
import { messageOf } from '@sandlot/shared/base/errors'
import { alternativesOf } from '@sandlot/shared/transcript/branches'
import { ChevronLeft, ChevronRight, CircleAlert, FileDown, Pencil, Split } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useLocation } from 'wouter'
import { call } from '../../net/call.ts'
import { CopyButton } from '../../ui/copy-button.tsx'
import { cn } from '../../lib/cn.ts'
import { useReading } from '../../state/reading.ts'
import { useBranches } from './branches.ts'
import { ACTION } from './message-action.ts'

/**
 * `promptId`: that it began; undefined: it joined one that ran. `ended`: the prompt that it belongs
 * to, once that has ended. The row has its height from the start: nothing moves when the prompt
 * ends.
 */
export function MessageActions(props: {
  text: string
  sessionId: string
  promptId: string | undefined
  ended: string | undefined
  /** Absent: it cannot be said in other words. */
  onEdit?: (() => void) | undefined
  /** The author, where that is another person. */
  by?: string
}) {
  const { text, sessionId, promptId, ended, onEdit, by } = props
  const { access } = useReading()
  const { state, fork } = useFork(sessionId)
  return (
    <div
      className={cn(
        'mt-1 flex min-h-7 items-center pointer-coarse:min-h-11',
        by === undefined ? 'justify-end' : '-ml-1.5',
      )}
    >
      {typeof state === 'object' && (
        <span role="alert" className="mr-1.5 inline-flex items-center gap-1.5 text-xs text-failed">
          <CircleAlert className="size-3.5 shrink-0" aria-hidden /> {state.problem}
        </span>
      )}
      {text !== '' && (
        <CopyButton
          text={text}
          what={by === undefined ? 'your message' : `the message of ${by}`}
          quiet
          className={ACTION}
        />
      )}
      {onEdit !== undefined && (
        <Action label="Edit and send again" busy={false} onClick={onEdit}>
          <Pencil className="size-3.5" aria-hidden />
        </Action>
      )}
      {ended !== undefined && access === 'own' && (
        <>
          <Action
            label="Continue from here in a new chat"
            busy={state === 'busy'}
            onClick={() => fork(ended)}
          >
            <Split className="size-3.5" aria-hidden />
          </Action>
          <RecordLink sessionId={sessionId} promptId={ended} />
        </>
      )}
      {promptId !== undefined && <BranchSwitch promptId={promptId} />}
    </div>
  )
}

/** `fork`: opens a new chat that continues from the end of this prompt. */
function useFork(sessionId: string) {
  const [, navigate] = useLocation()
  const [state, setState] = useState<'idle' | 'busy' | { problem: string }>('idle')
  const fork = (from: string): void => {
    setState('busy')
    call('forkChat', { params: { id: sessionId }, body: { promptId: from } }).then(
      (made) => {
        setState('idle')
        navigate(`/s/${made.sessionId}`)
      },
      (error: unknown) => setState({ problem: messageOf(error) }),
    )
  }
  return { state, fork }
}

function Action(props: { label: string; busy: boolean; onClick: () => void; children: ReactNode }) {
  return (
    <button
      type="button"
      disabled={props.busy}
      onClick={props.onClick}
      aria-label={props.label}
      title={props.label}
      className={ACTION}
    >
      {props.children}
    </button>
  )
}

/** Everything about the prompt of this message as one file: for a report of what went wrong. */
function RecordLink(props: { sessionId: string; promptId: string }) {
  const { sessionId, promptId } = props
  return (
    <a
      href={`/api/sessions/${encodeURIComponent(sessionId)}/prompts/${encodeURIComponent(promptId)}/export`}
      download
      aria-label="Download record"
      title="Download record"
      className={ACTION}
    >
      <FileDown className="size-3.5" aria-hidden />
    </a>
  )
}

const STEP =
  'inline-flex size-7 items-center justify-center rounded-md text-muted hover:bg-hover hover:text-ink disabled:opacity-35 disabled:pointer-events-none pointer-coarse:size-11'

/** ‹2/3›: which of the things that were said, or answered, at one place of the chat is shown. */
function BranchSwitch({ promptId }: { promptId: string }) {
  const { prompts, choose } = useBranches()
  const alternatives = alternativesOf(prompts, promptId)
  const at = alternatives.indexOf(promptId)
  if (alternatives.length < 2) return null
  const step = (by: number, label: string, Icon: typeof ChevronLeft) => {
    const other = alternatives[at + by]
    return (
      <button
        type="button"
        aria-label={label}
        title={label}
        disabled={other === undefined}
        onClick={() => other !== undefined && choose(other)}
        className={STEP}
      >
        <Icon className="size-3.5" aria-hidden />
      </button>
    )
  }
  return (
    <div
      role="group"
      aria-label={`Version ${at + 1} of ${alternatives.length}`}
      data-testid="branch-switch"
      className="flex items-center text-xs text-muted tabular-nums"
    >
      {step(-1, 'Previous version', ChevronLeft)}
      <span aria-hidden>
        {at + 1}/{alternatives.length}
      </span>
      {step(1, 'Next version', ChevronRight)}
    </div>
  )
}
