import { ImagePlus } from 'lucide-react'
import { type DragEvent, type ReactNode, useRef, useState } from 'react'

/** Files may be dropped anywhere on what is inside. */
export function DropZone(props: {
  sessionId: string | null
  onFiles: (files: readonly File[]) => void
  children: ReactNode
}) {
  const [over, setOver] = useState(false)
  // Each element inside is entered and left on its own.
  const depth = useRef(0)
  const move = (event: DragEvent, by: number) => {
    if (!event.dataTransfer.types.includes('Files')) return
    event.preventDefault()
    depth.current = Math.max(0, depth.current + by)
    setOver(depth.current > 0)
  }
  return (
    <div
      data-session-page={props.sessionId ?? 'new'}
      className="relative flex min-h-0 flex-1 flex-col"
      onDragEnter={(event) => move(event, 1)}
      onDragOver={(event) => move(event, 0)}
      onDragLeave={(event) => move(event, -1)}
      onDrop={(event) => {
        move(event, -depth.current)
        const files = [...event.dataTransfer.files]
        if (files.length > 0) props.onFiles(files)
      }}
    >
      {props.children}
      {over && (
        <div
          aria-hidden
          className="pointer-events-none absolute inset-2 z-20 flex flex-col items-center justify-center gap-2 rounded-2xl border-2 border-dashed border-accent bg-canvas/85 text-base font-medium"
        >
          <ImagePlus className="size-7 text-accent" /> Drop images to attach them
        </div>
      )}
    </div>
  )
}
