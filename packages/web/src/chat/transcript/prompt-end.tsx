import type { EndEntry } from '@sandlot/shared/transcript/entries'
import { CircleAlert, CircleSlash, RotateCcw } from 'lucide-react'
import { memo, useState } from 'react'
import { Link } from 'wouter'
import { cn } from '../../lib/cn.ts'
import { spentLine, spentRows } from '../../lib/usage-text.ts'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { useChat } from '../../state/chat-context.ts'
import { useReading } from '../../state/reading.ts'
import { END_WORDS, endAdvice, endLines, failuresSentence } from '@sandlot/shared/transcript/end-words'

/** There is something to say about how it ended. */
export function hasWords(entry: EndEntry): boolean {
  return entry.reason !== 'completed' || entry.text !== undefined || entry.failures !== undefined
}

/**
 * The end of a prompt, where it needs a sentence. `onRetry` is set for the last prompt only: it
 * sends the same message again, resolves when it is on its way, and does not reject.
 */
export const PromptEnd = memo(function PromptEnd(props: {
  entry: EndEntry
  onRetry: (() => Promise<void>) | null
}) {
  const { entry, onRetry } = props
  const [again, setAgain] = useState(false)
  const retry = async (): Promise<void> => {
    setAgain(true)
    await onRetry?.()
    setAgain(false)
  }
  const { together } = useReading()
  const failures = failuresSentence(entry)
  if (entry.reason === 'completed') {
    return (
      <div data-testid="prompt-end" data-reason="completed" className="flex flex-col gap-2">
        {entry.text !== undefined && <p className="text-base text-muted">{entry.text}</p>}
        {failures !== undefined && <p className="text-sm text-muted">{failures}</p>}
      </div>
    )
  }
  const [ended, details] = endLines(entry.reason, entry.text, entry.cause)
  // It need not have been the reader.
  const title = together && entry.reason === 'cancelled' ? 'This was stopped.' : ended
  const broken = END_WORDS[entry.reason].tone === 'error'
  const Icon = broken ? CircleAlert : CircleSlash
  return (
    <div
      data-testid="prompt-end"
      data-reason={entry.reason}
      role={broken ? 'alert' : undefined}
      className={cn(
        'flex flex-wrap items-start gap-x-3 gap-y-2.5 rounded-lg border px-3.5 py-3',
        broken ? 'border-failed-line bg-failed-wash' : 'border-line',
      )}
    >
      <Icon className={cn('mt-0.5 size-4 shrink-0', broken ? 'text-failed' : 'text-faint')} aria-hidden />
      <div className="min-w-0 flex-1 basis-56">
        <p className={cn('text-sm font-medium', broken ? 'text-ink' : 'text-muted')}>{title}</p>
        {details !== undefined && (
          <p className="mt-0.5 text-sm whitespace-pre-wrap text-muted [overflow-wrap:anywhere]">{details}</p>
        )}
        {failures !== undefined && <p className="mt-0.5 text-sm text-muted">{failures}</p>}
        <Advice entry={entry} />
        {broken && <RequestId entry={entry} />}
      </div>
      {onRetry !== null && (
        <Button size="sm" disabled={again} onClick={() => void retry()}>
          <RotateCcw className="size-3.5" aria-hidden />
          Try again
        </Button>
      )}
    </div>
  )
})

/** The next step by the reader's role, with a link to what was set on the page. */
function Advice({ entry }: { entry: EndEntry }) {
  const isAdmin = useChat().me.role === 'admin'
  const advice = endAdvice(entry, isAdmin)
  if (advice === undefined) return null
  return (
    <p className="mt-0.5 text-sm text-muted">
      {advice}
      {isAdmin && entry.setIn === 'page' && (
        <>
          {' '}
          <Link
            href="/settings/models"
            className="text-accent underline underline-offset-2 pointer-coarse:inline-block pointer-coarse:py-3"
          >
            Settings → Models
          </Link>
        </>
      )}
    </p>
  )
}

/** The id to name in a report: the provider's, or else ours, which the log has. */
function RequestId(props: { entry: EndEntry }) {
  const { requestId, id } = props.entry
  return (
    <p className="mt-1 flex flex-wrap items-center gap-x-1 text-xs text-muted">
      {requestId === undefined ? 'Prompt id' : 'Request id'}
      <code className="min-w-0 font-mono [overflow-wrap:anywhere]">{requestId ?? id}</code>
      <CopyButton text={requestId ?? id} what={requestId === undefined ? 'prompt id' : 'request id'} quiet />
    </p>
  )
}

/** One quiet line of what a prompt took; opened, all that is known of it. */
export const PromptSpent = memo(function PromptSpent(props: { entry: EndEntry }) {
  const { spent, tookMs } = props.entry
  return (
    <details data-testid="prompt-spent" className="text-xs text-faint">
      <summary className="inline-block cursor-pointer rounded-md py-0.5 tabular-nums hover:text-ink pointer-coarse:py-3.5">
        {spentLine(spent, tookMs) || 'Usage'}
      </summary>
      <dl className="mt-1 mb-1 grid w-fit max-w-full grid-cols-[auto_1fr] gap-x-4 gap-y-0.5 rounded-lg border border-line px-3 py-2 text-muted">
        {spentRows(spent).map(([name, value]) => (
          <div key={name} className="contents">
            <dt>{name}</dt>
            <dd className="tabular-nums">{value}</dd>
          </div>
        ))}
      </dl>
    </details>
  )
})
