import type { RuleReason } from '@sandlot/shared/rules'
import { ChevronRight } from 'lucide-react'
import { useId, useState } from 'react'
import { cn } from '../lib/cn.ts'
import { formatCount } from '../lib/format.ts'
import { Revealed } from '../ui/revealed.tsx'

/** “Why was I asked”, in one line: the gravest reason, which comes first. The others open below it. `whole`: what the card shows already. */
export function ApprovalWhy(props: { why: readonly RuleReason[]; whole: string }) {
  const [first, ...others] = props.why
  const [open, setOpen] = useState(false)
  const listId = useId()
  if (first === undefined) return null
  return (
    <div data-testid="approval-why" className="flex flex-col gap-1 text-sm text-muted">
      <div className="flex flex-wrap items-baseline gap-x-2">
        <p className="min-w-0 [overflow-wrap:anywhere]">
          <Reason reason={first} whole={props.whole} />
        </p>
        {others.length > 0 && (
          <button
            type="button"
            aria-expanded={open}
            aria-controls={listId}
            className="inline-flex items-center gap-0.5 rounded text-xs hover:text-ink pointer-coarse:min-h-11"
            onClick={() => setOpen(!open)}
          >
            {formatCount(others.length, 'more reason')}
            <ChevronRight
              className={cn('size-3.5 transition-transform duration-100', open && 'rotate-90')}
              aria-hidden
            />
          </button>
        )}
      </div>
      <ul id={listId} hidden={!open} aria-label="Why this asks" className="flex flex-col gap-1">
        {others.map((reason) => (
          <li key={`${reason.part}\n${reason.because}`} className="[overflow-wrap:anywhere]">
            <Reason reason={reason} whole={props.whole} />
          </li>
        ))}
      </ul>
    </div>
  )
}

/** What the card shows as a whole is not said again beside its reason. */
function Reason({ reason: { part, because }, whole }: { reason: RuleReason; whole: string }) {
  if (part === whole.trim()) return <>This {because}.</>
  return (
    <>
      <code className="rounded bg-sunken px-1 py-0.5 text-xs text-ink">
        <Revealed text={part} />
      </code>{' '}
      {because}.
    </>
  )
}
