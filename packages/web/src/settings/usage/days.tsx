/** Which days a page about usage shows. Days are UTC, as limits are. */
import { useId, useState } from 'react'
import { cn } from '../../lib/cn.ts'
import { INPUT } from '../../ui/field.tsx'
import { Choice } from '../people/setting-fields.tsx'

/** Days like `2026-11-27`, both included. */
export interface Days {
  from: string
  to: string
}

const DAY_MS = 86_400_000
const SPANS = [
  ['7', 'Last 7 days'],
  ['30', 'Last 30 days'],
  ['90', 'Last 90 days'],
  ['month', 'This month'],
  ['before', 'Last month'],
  ['365', 'Last 365 days'],
  ['own', 'Custom range'],
] as const
type Span = (typeof SPANS)[number][0]

/** `now`: epoch milliseconds. */
export function daysOf(span: Exclude<Span, 'own'>, now: number): Days {
  const today = new Date(now)
  const [year, month] = [today.getUTCFullYear(), today.getUTCMonth()]
  if (span === 'month') return { from: wordOf(Date.UTC(year, month, 1)), to: wordOf(now) }
  if (span === 'before')
    return { from: wordOf(Date.UTC(year, month - 1, 1)), to: wordOf(Date.UTC(year, month, 0)) }
  return { from: wordOf(now - (Number(span) - 1) * DAY_MS), to: wordOf(now) }
}

function wordOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

/** Every day of it, in order. */
export function everyDay({ from, to }: Days): string[] {
  const days: string[] = []
  for (let at = Date.parse(from); at <= Date.parse(to); at += DAY_MS) days.push(wordOf(at))
  return days
}

export function DaysChoice(props: { days: Days; onChange: (days: Days) => void }) {
  const { days, onChange } = props
  const [span, setSpan] = useState<Span>('30')
  const id = useId()
  const end = (name: 'from' | 'to', label: string) => (
    <div className="min-w-0 flex-1 basis-36">
      <label htmlFor={`${id}-${name}`} className="text-xs text-muted">
        {label}
      </label>
      <input
        id={`${id}-${name}`}
        type="date"
        className={cn(INPUT, 'mt-1')}
        value={days[name]}
        onChange={({ target }) => {
          if (target.value !== '') onChange({ ...days, [name]: target.value })
        }}
      />
    </div>
  )
  return (
    <div className="flex flex-1 flex-wrap items-end gap-3">
      <div className="min-w-0 flex-1 basis-44">
        <Choice
          label="Days"
          value={span}
          choices={SPANS}
          onChange={(chosen) => {
            setSpan(chosen)
            if (chosen !== 'own') onChange(daysOf(chosen, Date.now()))
          }}
        />
      </div>
      {span === 'own' && end('from', 'First day (UTC)')}
      {span === 'own' && end('to', 'Last day (UTC)')}
    </div>
  )
}
