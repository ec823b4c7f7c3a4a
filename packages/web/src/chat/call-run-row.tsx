import { ChevronRight } from 'lucide-react'
import { memo, useId, useState } from 'react'
import { cn } from '../lib/cn.ts'
import { type CallRun, runWords } from './call-runs.ts'
import { ToolCard } from './tool-card.tsx'
import { ToolIcon } from './tool-icon.tsx'

/** Calls that all went well, folded into one row. */
export const CallRunRow = memo(function CallRunRow(props: { run: CallRun; sessionId: string }) {
  const { run } = props
  const [open, setOpen] = useState(false)
  const listId = useId()
  return (
    <section data-testid="call-run" aria-label={runWords(run)}>
      <button
        type="button"
        aria-expanded={open}
        aria-controls={listId}
        onClick={() => setOpen(!open)}
        className="flex min-h-9 w-full items-center gap-2.5 rounded-lg border border-line px-3 py-1.5 text-left text-sm text-muted hover:bg-hover focus-visible:-outline-offset-2 pointer-coarse:min-h-11"
      >
        <ToolIcon kind={run.calls[0]?.kind ?? 'other'} className="size-4 shrink-0 text-faint" />
        <span className="min-w-0 flex-1 tabular-nums">{runWords(run)}</span>
        <ChevronRight
          className={cn('size-4 shrink-0 text-faint transition-transform duration-100', open && 'rotate-90')}
          aria-hidden
        />
      </button>
      <div id={listId} hidden={!open} className="mt-1.5 flex flex-col gap-1.5 border-l-2 border-line pl-2.5">
        {open && run.calls.map((call) => <ToolCard key={call.id} call={call} sessionId={props.sessionId} />)}
      </div>
    </section>
  )
})
