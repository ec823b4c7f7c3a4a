import { CircleAlert, Info } from 'lucide-react'
import type { ReactNode } from 'react'

/** Something went wrong, said where it happened. */
export function Alert(props: { children: ReactNode }) {
  return (
    <div
      role="alert"
      className="flex items-start gap-2.5 rounded-lg border border-failed-line bg-failed-wash px-3 py-2.5 text-sm text-ink"
    >
      <CircleAlert className="mt-0.5 size-4 shrink-0 text-failed" aria-hidden />
      <div className="min-w-0 flex-1 [overflow-wrap:anywhere]">{props.children}</div>
    </div>
  )
}

/** Nothing went wrong: something else was first, and the person should know. */
export function Hint(props: { children: ReactNode }) {
  return (
    <div
      role="status"
      className="flex items-start gap-2.5 rounded-lg border border-line bg-panel px-3 py-2.5 text-sm text-muted"
    >
      <Info className="mt-0.5 size-4 shrink-0" aria-hidden />
      <div className="min-w-0 flex-1 [overflow-wrap:anywhere]">{props.children}</div>
    </div>
  )
}
