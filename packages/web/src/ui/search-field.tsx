import { Search } from 'lucide-react'
import { cn } from '../lib/cn.ts'
import { INPUT } from './field.tsx'

/** A field that narrows a list while one types. `label`: what is found by what. */
export function SearchField(props: {
  label: string
  placeholder: string
  value: string
  onChange: (value: string) => void
  className?: string
}) {
  return (
    <search className={cn('relative min-w-0 flex-1', props.className)}>
      <Search
        className="pointer-events-none absolute top-3 left-3 size-4 text-faint pointer-coarse:top-3.5"
        aria-hidden
      />
      <input
        type="search"
        dir="auto"
        aria-label={props.label}
        placeholder={props.placeholder}
        className={cn(INPUT, 'pl-9')}
        value={props.value}
        maxLength={200}
        autoComplete="off"
        onChange={({ target }) => props.onChange(target.value)}
      />
    </search>
  )
}
