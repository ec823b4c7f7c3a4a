import type { ReactNode } from 'react'

/** A part of a section. `heading`: what it shows in place of its accessible name. */
export function Part(props: {
  title: string
  heading?: string
  text?: string | undefined
  children: ReactNode
}) {
  return (
    <section aria-label={props.title} className="flex flex-col gap-3">
      <div>
        <h2 className="text-base font-semibold">{props.heading ?? props.title}</h2>
        {props.text !== undefined && <p className="mt-0.5 text-sm text-muted">{props.text}</p>}
      </div>
      {props.children}
    </section>
  )
}
