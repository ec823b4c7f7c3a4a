import { type ComponentProps, useId } from 'react'
import { cn } from '../lib/cn.ts'

export const INPUT =
  'h-10 w-full rounded-lg border border-line-strong bg-raised px-3 text-sm text-ink shadow-1 placeholder:text-faint focus-visible:outline-2 focus-visible:outline-offset-0 focus-visible:outline-accent'

/** A labelled text input with an optional hint below it. */
export function Field({
  label,
  hint,
  className,
  ...rest
}: ComponentProps<'input'> & { label: string; hint?: string }) {
  const id = useId()
  return (
    <div className={cn('flex flex-col gap-1.5', className)}>
      <label htmlFor={id} className="text-sm font-medium text-ink">
        {label}
      </label>
      <input
        id={id}
        {...rest}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        className={INPUT}
      />
      {hint !== undefined && (
        <p id={`${id}-hint`} className="text-xs text-faint">
          {hint}
        </p>
      )}
    </div>
  )
}
