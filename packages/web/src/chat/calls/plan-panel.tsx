import type { PlanEntry } from '@sandlot/shared/chat/events'
import { ChevronDown, Circle, CircleCheck, CircleDot } from 'lucide-react'
import { useId, useState } from 'react'
import { cn } from '../../lib/cn.ts'

const ICON = { pending: Circle, in_progress: CircleDot, completed: CircleCheck }
const INK = { pending: 'text-faint', in_progress: 'text-accent', completed: 'text-well' }
const WORD = { pending: 'to do', in_progress: 'in progress', completed: 'done' }

/** The model's plan with its ticks, above the composer. Folded it shows the step it is at. */
export function PlanPanel(props: { plan: readonly PlanEntry[]; running: boolean }) {
  const [choice, setChoice] = useState<boolean | null>(null)
  const listId = useId()
  if (props.plan.length === 0) return null
  const done = props.plan.filter((step) => step.status === 'completed').length
  const current = props.plan.find((step) => step.status === 'in_progress')
  const open = choice ?? (props.running && window.innerWidth >= 640)
  return (
    <section aria-label="Plan" data-testid="plan" className="border-b border-line">
      <button
        type="button"
        aria-expanded={open}
        aria-controls={listId}
        onClick={() => setChoice(!open)}
        className="flex h-9 pointer-coarse:h-11 w-full items-center gap-2.5 rounded-t-2xl px-4 text-left text-sm hover:bg-hover focus-visible:-outline-offset-2"
      >
        <span className="font-medium">Plan</span>
        <span className="text-xs text-muted tabular-nums">
          {done} of {props.plan.length}
        </span>
        <span className="min-w-0 flex-1 truncate text-muted">{open ? '' : current?.content}</span>
        <ChevronDown
          className={cn('size-4 text-faint transition-transform duration-100', !open && '-rotate-90')}
          aria-hidden
        />
      </button>
      <ol id={listId} hidden={!open} className="max-h-44 overflow-y-auto px-4 pb-2.5">
        {props.plan.map((step, index) => {
          const Icon = ICON[step.status]
          return (
            // A plan comes whole each time; a step has no identity beyond its place.
            // oxlint-disable-next-line react/no-array-index-key
            <li key={index} data-status={step.status} className="flex items-start gap-2.5 py-1 text-sm">
              <Icon className={cn('mt-0.5 size-4 shrink-0', INK[step.status])} aria-hidden />
              <span
                className={cn(
                  'min-w-0',
                  step.status === 'completed' ? 'text-muted line-through decoration-line-strong' : 'text-ink',
                )}
              >
                {step.content}
                <span className="sr-only"> ({WORD[step.status]})</span>
              </span>
            </li>
          )
        })}
      </ol>
    </section>
  )
}
