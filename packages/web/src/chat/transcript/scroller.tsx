/**
 * The conversation's scrolling region: stays at its end while it grows, until the reader scrolls
 * up or asks for another place.
 */
import { ArrowDown } from 'lucide-react'
import {
  createContext,
  type ReactNode,
  type Ref,
  type RefObject,
  useContext,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
} from 'react'
import { useStickToBottom } from 'use-stick-to-bottom'
import { scrollToEntry } from './scroll-to-entry.ts'
import { Button } from '../../ui/button.tsx'

export interface ScrollHandle {
  toBottom(): void
}

const LeaveEnd = createContext<() => void>(() => undefined)

/** To be called before something else than the end is brought into view. */
export function useLeaveEnd(): () => void {
  return useContext(LeaveEnd)
}

export function Scroller(props: { children: ReactNode; below: ReactNode; ref?: Ref<ScrollHandle> }) {
  const scroll = useStickToBottom({ initial: 'instant', resize: 'instant' })
  // The hook scrolls with its first frame, which is after the first that is painted. Who comes back
  // from the settings finds the place that was left.
  useLayoutEffect(() => {
    const region = scroll.scrollRef.current
    if (region !== null && scroll.state.isAtBottom) region.scrollTop = region.scrollHeight
  }, [scroll.scrollRef, scroll.state])
  useFarFromEnd(scroll.scrollRef, scroll.stopScroll)
  useEntryOfAddress()
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
          <LeaveEnd value={scroll.stopScroll}>{props.children}</LeaveEnd>
        </div>
      </div>
      <div className="pointer-events-none absolute inset-x-0 top-0 h-4 bg-linear-to-b from-canvas to-transparent" />
      <div className="pointer-events-none absolute inset-x-0 bottom-0 h-6 bg-linear-to-t from-canvas to-transparent" />
      {props.below}
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

/**
 * Calls `onFar` when the region is scrolled up by more than a screen: the hook takes that for the
 * effect of something that grew just then, and would go back to the end with the next row.
 */
function useFarFromEnd(region: RefObject<HTMLElement | null>, onFar: () => void): void {
  useEffect(() => {
    const element = region.current
    if (element === null) return undefined
    let last = element.scrollTop
    const onScroll = () => {
      const { scrollTop, scrollHeight, clientHeight } = element
      if (scrollTop < last && scrollHeight - scrollTop > 2 * clientHeight) onFar()
      last = scrollTop
    }
    element.addEventListener('scroll', onScroll, { passive: true })
    return () => element.removeEventListener('scroll', onScroll)
  }, [region, onFar])
}

/** Empty for an address that names none, or is not well encoded. */
function entryOf(hash: string): string {
  try {
    return decodeURIComponent(hash.slice(1))
  } catch {
    return ''
  }
}

/** The place that the address names behind its `#`. */
function useEntryOfAddress(): void {
  useEffect(() => {
    const go = () => {
      const id = entryOf(location.hash)
      if (id !== '') scrollToEntry(id)
    }
    go()
    window.addEventListener('hashchange', go)
    return () => window.removeEventListener('hashchange', go)
  }, [])
}
