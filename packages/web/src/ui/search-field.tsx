import { Search } from 'lucide-react'
import type { KeyboardEvent } from 'react'
import { cn } from '../lib/cn.ts'
import { INPUT } from './field.tsx'

/** A field that narrows a list while one types. `label`: what is found by what. */
export function SearchField(props: {
  label: string
  placeholder: string
  value: string
  onChange: (value: string) => void
  onKeyDown?: (event: KeyboardEvent) => void
  /** In a toolbar. */
  compact?: boolean
  className?: string
}) {
  return (
    <search className={cn('relative min-w-0 flex-1', props.className)}>
      <Search
        className={cn(
          'pointer-events-none absolute left-3 text-faint',
          props.compact === true
            ? 'top-2.25 left-2.5 size-3.5 pointer-coarse:top-3.75'
            : 'top-3 size-4 pointer-coarse:top-3.5',
        )}
        aria-hidden
      />
      <input
        type="search"
        dir="auto"
        aria-label={props.label}
        placeholder={props.placeholder}
        className={cn(INPUT, props.compact === true ? 'h-8 pr-2 pl-8' : 'pl-9')}
        value={props.value}
        maxLength={200}
        spellCheck={false}
        autoComplete="off"
        onChange={({ target }) => props.onChange(target.value)}
        onKeyDown={props.onKeyDown}
      />
    </search>
  )
}
