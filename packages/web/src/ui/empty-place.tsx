import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'

/** A panel of the workspace in which nothing is yet: what will be, and how it comes about. */
export function EmptyPlace(props: { icon: LucideIcon; title: string; children: ReactNode }) {
  return (
    <div className="flex flex-1 flex-col items-center justify-center gap-2 px-8 py-12 text-center text-sm text-muted *:max-w-76">
      <props.icon className="size-6 text-faint" aria-hidden />
      <p className="font-medium text-ink">{props.title}</p>
      {props.children}
    </div>
  )
}
