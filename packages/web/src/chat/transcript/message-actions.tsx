/**
 * What can be done with a message of one's own: copied, said in other words, gone on from,
 * reported.
 */
import type { MessageImage } from '@sandlot/shared/images'
import { messageOf } from '@sandlot/shared/errors'
import { CircleAlert, FileDown, Pencil, Split } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useLocation } from 'wouter'
import { readAgain } from '../../net/images.ts'
import { CopyButton } from '../../ui/copy-button.tsx'
import { cn } from '../../lib/cn.ts'
import { useChat } from '../chat-context.ts'
import { useReading } from '../sharing/reading.ts'
import { keepDraft } from '../composer/drafts.ts'
import { ACTION } from './message-action.ts'
import { forkSession } from '../../net/routes.ts'

/**
 * `ended`: the prompt that it belongs to, once that has ended. `first`: of its prompt, so that
 * everything before the prompt is everything before the message. The row has its height from the
 * start: nothing moves when the prompt ends.
 */
export function MessageActions(props: {
  text: string
  images: readonly MessageImage[]
  sessionId: string
  ended: string | undefined
  first: boolean
  /** Who wrote it, where that is another. */
  by?: string
}) {
  const { text, images, sessionId, ended, first, by } = props
  const { access } = useReading()
  const { attachments, unsent } = useChat()
  const [, navigate] = useLocation()
  const [state, setState] = useState<'idle' | 'busy' | { problem: string }>('idle')
  const busy = state === 'busy'
  const attempt = (work: () => Promise<string>): void => {
    setState('busy')
    work().then(
      (made) => {
        setState('idle')
        navigate(`/s/${made}`)
      },
      (error: unknown) => setState({ problem: messageOf(error) }),
    )
  }
  const goOn = (promptId: string) => attempt(() => forkSession(sessionId, promptId, 'after'))
  const sayAnew = (promptId: string) =>
    attempt(async () => {
      const files = await readAgain(images)
      const made = await forkSession(sessionId, promptId, 'before')
      keepDraft(unsent, made, text)
      if (files.length > 0) await attachments.add(made, files, null)
      return made
    })
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
      {ended !== undefined && access === 'own' && (
        <>
          {first && by === undefined && (
            <Action label="Say it in other words, in a new chat" busy={busy} onClick={() => sayAnew(ended)}>
              <Pencil className="size-3.5" aria-hidden />
            </Action>
          )}
          <Action label="Continue from here in a new chat" busy={busy} onClick={() => goOn(ended)}>
            <Split className="size-3.5" aria-hidden />
          </Action>
          <RecordLink sessionId={sessionId} promptId={ended} />
        </>
      )}
    </div>
  )
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
