import { type ComponentProps, type ReactNode, useId } from 'react'
import { cn } from '../lib/cn.ts'

export const INPUT =
  'h-10 pointer-coarse:h-11 w-full rounded-lg border border-line-strong bg-raised px-3 text-sm text-ink shadow-1 placeholder:text-faint focus-visible:outline-2 focus-visible:outline-offset-0 focus-visible:outline-accent'

export type FieldProps = ComponentProps<'input'> & { label: string; hint?: string }

/** A labelled text input with an optional hint below it. `beside` stands over its right end. */
export function Field({ label, hint, className, beside, ...rest }: FieldProps & { beside?: ReactNode }) {
  const id = useId()
  return (
    <div className={cn('flex flex-col gap-1.5', className)}>
      <label htmlFor={id} className="text-sm font-medium text-ink">
        {label}
      </label>
      <div className="relative">
        <input
          id={id}
          dir="auto"
          {...rest}
          aria-describedby={hint === undefined ? undefined : `${id}-hint`}
          className={cn(INPUT, beside !== undefined && 'pr-10 pointer-coarse:pr-11')}
        />
        {beside}
      </div>
      {hint !== undefined && (
        <p id={`${id}-hint`} className="text-xs text-faint">
          {hint}
        </p>
      )}
    </div>
  )
}
