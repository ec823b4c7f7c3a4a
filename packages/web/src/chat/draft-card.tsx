/** A call that the model is still writing. Nothing of it runs yet; the card of the call takes its place. */
import type { DraftedCall } from '@sandlot/shared/call-drafts'
import { PencilLine } from 'lucide-react'
import { memo } from 'react'
import { formatBytes } from '../lib/format.ts'
import { draftSubject, draftTail } from './draft-words.ts'
import { Revealed } from '../ui/revealed.tsx'

/** What is shorter stands in the header. */
const LONG_CHARS = 160
const LINES = 6

export const DraftCard = memo(function DraftCard(props: { draft: DraftedCall }) {
  const { name, chars, text } = props.draft
  const subject = draftSubject(text)
  return (
    <article
      data-testid="draft-card"
      aria-label={`${name}: being written`}
      className="overflow-hidden rounded-lg border border-dashed border-line-strong"
    >
      <div className="flex min-h-9 items-center gap-2.5 px-3 py-1.5">
        <PencilLine className="size-4 shrink-0 text-accent" aria-hidden />
        <span className="min-w-0 flex-1 truncate text-sm text-ink">
          {name}
          {subject !== undefined && (
            <span className="ml-2 font-mono text-xs text-muted">
              <Revealed text={subject.replaceAll('\n', ' ')} />
            </span>
          )}
        </span>
        <span className="flex shrink-0 items-center gap-2 text-xs text-accent tabular-nums">
          <span className="shimmer font-medium">Writing</span>
          {chars > LONG_CHARS && <span className="text-faint">{formatBytes(chars)}</span>}
        </span>
      </div>
      {chars > LONG_CHARS && (
        <pre
          className="term flex max-h-32 flex-col justify-end overflow-hidden px-3 pb-2.5 text-muted"
          aria-hidden
        >
          <Revealed text={draftTail(text, LINES)} />
        </pre>
      )}
    </article>
  )
})
