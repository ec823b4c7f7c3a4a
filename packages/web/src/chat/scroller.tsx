import { ArrowDown } from 'lucide-react'
import { type ReactNode, type Ref, useImperativeHandle, useLayoutEffect } from 'react'
import { useStickToBottom } from 'use-stick-to-bottom'
import { Button } from '../ui/button.tsx'

export interface ScrollHandle {
  toBottom(): void
}

/** The conversation's scrolling region: stays at its end while it grows, until the reader scrolls up. */
export function Scroller(props: { children: ReactNode; ref?: Ref<ScrollHandle> }) {
  const scroll = useStickToBottom({ initial: 'instant', resize: 'instant' })
  // The hook scrolls with its first frame, which is after the first that is painted.
  useLayoutEffect(() => {
    const region = scroll.scrollRef.current
    if (region !== null) region.scrollTop = region.scrollHeight
  }, [scroll.scrollRef])
  useImperativeHandle(props.ref, () => ({ toBottom: () => void scroll.scrollToBottom('instant') }), [scroll])
  return (
    <div className="relative min-h-0 flex-1">
      {/* Focusable, so that the keyboard can scroll it. */}
      <div
        ref={scroll.scrollRef}
        className="h-full overflow-y-auto overscroll-contain focus-visible:-outline-offset-2"
        data-scrolls
        tabIndex={0}
        role="group"
        aria-label="Messages"
      >
        <div ref={scroll.contentRef} className="mx-auto w-full max-w-[48rem] px-4 pb-8 sm:px-6">
          {props.children}
        </div>
      </div>
      <div className="pointer-events-none absolute inset-x-0 top-0 h-4 bg-linear-to-b from-canvas to-transparent" />
      <div className="pointer-events-none absolute inset-x-0 bottom-0 h-6 bg-linear-to-t from-canvas to-transparent" />
      {!scroll.isAtBottom && (
        <Button
          size="sm"
          onClick={() => void scroll.scrollToBottom()}
          className="absolute bottom-4 left-1/2 -translate-x-1/2 rounded-full px-3 shadow-2"
        >
          <ArrowDown className="size-3.5" aria-hidden /> Jump to latest
        </Button>
      )}
    </div>
  )
}
