import { type ReactNode, useEffect, useRef } from 'react'
import { cn } from '../lib/cn.ts'

/**
 * A scrolling pane of output. While `following`, it stays at its end unless the reader scrolled up. Focusable, so that
 * the keyboard can scroll it.
 */
export function OutputPane(props: {
  children: ReactNode
  label: string
  following: boolean
  content: unknown
}) {
  const pane = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  useEffect(() => {
    const element = pane.current
    if (element !== null && props.following && atEnd.current) element.scrollTop = element.scrollHeight
  }, [props.content, props.following])
  return (
    <div
      ref={pane}
      data-testid="tool-output"
      role="group"
      aria-label={props.label}
      tabIndex={0}
      onScroll={(event) => {
        const element = event.currentTarget
        atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 24
      }}
      className={cn('term max-h-80 overflow-auto rounded-md border border-line bg-sunken px-3 py-2')}
    >
      {props.children}
    </div>
  )
}
