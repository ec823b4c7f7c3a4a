import { type ComponentProps, type ReactNode, useId } from 'react'
import { cn } from '../lib/cn.ts'

export const INPUT =
  'h-10 pointer-coarse:h-11 w-full rounded-lg border border-line-strong bg-raised px-3 text-sm text-ink shadow-1 placeholder:text-faint focus-visible:outline-2 focus-visible:outline-offset-0 focus-visible:outline-accent'

export type FieldProps = ComponentProps<'input'> & { label: string; hint?: string }

/** A label over what it is about, which gets the id, with an optional hint below. */
export function Labelled(props: {
  label: string
  hint?: string | undefined
  className?: string | undefined
  children: (id: string, hintId: string | undefined) => ReactNode
}) {
  const id = useId()
  const { hint } = props
  return (
    <div className={cn('flex flex-col gap-1.5', props.className)}>
      <label htmlFor={id} className="text-sm font-medium text-ink">
        {props.label}
      </label>
      {props.children(id, hint === undefined ? undefined : `${id}-hint`)}
      {hint !== undefined && (
        <p id={`${id}-hint`} className="text-xs text-faint">
          {hint}
        </p>
      )}
    </div>
  )
}

/** One of several, under a label. */
export function Choice(props: {
  label: string
  value: string
  /** Value → words, in their order. */
  options: readonly (readonly [string, string])[]
  /** Shown while nothing is chosen, and not to be chosen. */
  placeholder?: string
  onChange: (value: string) => void
}) {
  return (
    <Labelled label={props.label}>
      {(id) => (
        <select
          id={id}
          className={INPUT}
          value={props.value}
          onChange={({ target }) => props.onChange(target.value)}
        >
          {props.placeholder !== undefined && (
            <option value="" disabled>
              {props.placeholder}
            </option>
          )}
          {props.options.map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  )
}

/** A labelled text input with an optional hint below it. `beside` stands over its right end. */
export function Field({ label, hint, className, beside, ...rest }: FieldProps & { beside?: ReactNode }) {
  return (
    <Labelled label={label} hint={hint} className={className}>
      {(id, hintId) => (
        <div className="relative">
          <input
            id={id}
            dir="auto"
            {...rest}
            aria-describedby={hintId}
            className={cn(INPUT, beside !== undefined && 'pr-10 pointer-coarse:pr-11')}
          />
          {beside}
        </div>
      )}
    </Labelled>
  )
}
