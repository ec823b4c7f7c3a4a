/** Shared parts of the views: reading a text, a window over many rows, a note while one waits. */
import { messageOf } from '@sandlot/shared/base/errors'
import { useVirtualizer } from '@tanstack/react-virtual'
import { Info } from 'lucide-react'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { cn } from '../lib/cn.ts'
import { Spinner } from '../ui/spinner.tsx'
import { type FileHead, type FileText, readText } from './source.ts'

export interface ViewProps {
  file: FileHead
}

type ReadText = { state: 'reading' } | ({ state: 'read' } & FileText) | { state: 'failed'; why: string }

const READING: ReadText = { state: 'reading' }

export function useText(file: FileHead, most: number): ReadText {
  const [read, setRead] = useState<ReadText>(READING)
  useEffect(() => {
    const controller = new AbortController()
    setRead(READING)
    readText(file, most, controller.signal).then(
      (found) => setRead({ state: 'read', ...found }),
      (error: unknown) => {
        if (!controller.signal.aborted) setRead({ state: 'failed', why: messageOf(error) })
      },
    )
    return () => controller.abort()
  }, [file, most])
  return read
}

export function Waiting(props: { children: ReactNode }) {
  return (
    <p role="status" className="flex items-center gap-2 p-5 text-sm text-muted">
      <Spinner /> {props.children}
    </p>
  )
}

/** One line above what is shown, about how it is shown. */
export function Note(props: { children: ReactNode }) {
  return (
    <p className="flex items-start gap-2 border-b border-line bg-panel px-4 py-2 text-xs text-muted">
      <Info className="mt-0.5 size-3.5 shrink-0" aria-hidden />
      <span className="min-w-0">{props.children}</span>
    </p>
  )
}

/** A note about the encoding, where there is something to say. */
export function EncodingNote({ note }: { note: string | undefined }) {
  return note === undefined ? null : <Note>{note}</Note>
}

/** In the place of a view. */
export function CannotShow(props: { children: ReactNode }) {
  return (
    <div className="flex flex-1 flex-col items-center justify-center gap-2 p-8 text-center text-sm text-muted">
      <p className="max-w-[24rem]">{props.children}</p>
    </div>
  )
}

/** Only the rows that are near the screen exist. `wraps`: they are of different heights. */
export function Windowed(props: {
  count: number
  rowHeight: number
  label: string
  wraps?: boolean
  className?: string
  children: (index: number) => ReactNode
}) {
  const { count, rowHeight, wraps = false } = props
  const scrolled = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scrolled.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  })
  return (
    <div
      ref={scrolled}
      tabIndex={0}
      role="group"
      aria-label={props.label}
      className={cn('min-h-0 flex-1 overflow-auto focus-visible:-outline-offset-2', props.className)}
    >
      <div style={{ height: rows.getTotalSize() }} className="relative">
        {rows.getVirtualItems().map(({ index, start, key }) => (
          <div
            key={key}
            data-index={index}
            ref={wraps ? rows.measureElement : undefined}
            style={{ transform: `translateY(${start}px)`, ...(wraps ? {} : { height: rowHeight }) }}
            className={cn('absolute top-0 left-0', wraps ? 'w-full' : 'min-w-full')}
          >
            {props.children(index)}
          </div>
        ))}
      </div>
    </div>
  )
}
