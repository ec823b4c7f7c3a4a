/** The answers that are remembered, each with exactly what will be. */
import type { PermissionOption } from '@sandlot/shared/sandlot-event'
import { type Remembered, describeMatch } from '@sandlot/shared/rules'
import { Revealed } from './tool-arguments.tsx'

const SCOPE: Record<Remembered['scope'], string> = { session: 'For this chat', always: 'Always' }

export function ApprovalRemember(props: {
  options: readonly (PermissionOption & { remembers: Remembered })[]
  disabled: boolean
  onAnswer: (option: PermissionOption) => void
}) {
  if (props.options.length === 0) return null
  return (
    <div role="group" aria-label="Allow and remember" className="flex flex-col gap-1.5">
      <p className="text-xs font-medium text-muted">Allow and remember</p>
      <ul className="divide-y divide-line overflow-hidden rounded-lg border border-line-strong bg-raised shadow-1">
        {props.options.map((option) => (
          <li key={option.optionId}>
            <button
              type="button"
              disabled={props.disabled}
              data-option-kind={option.kind}
              data-option-id={option.optionId}
              onClick={() => props.onAnswer(option)}
              className="flex w-full flex-col items-start gap-0.5 px-3 py-2 text-left text-sm transition-colors duration-100 hover:bg-hover disabled:pointer-events-none disabled:opacity-50 max-sm:min-h-11 sm:flex-row sm:items-baseline sm:gap-3"
            >
              <span className="w-32 shrink-0 font-medium text-ink">{SCOPE[option.remembers.scope]}</span>
              <span className="flex min-w-0 flex-1 flex-col gap-0.5 text-muted [overflow-wrap:anywhere]">
                {option.remembers.rules.map((match) => (
                  <span key={JSON.stringify(match)} className="line-clamp-3 whitespace-pre-line">
                    <Revealed text={describeMatch(match)} />
                  </span>
                ))}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  )
}
