/** A picture: fitted at first, as large as one wants then. */
import { Maximize, ZoomIn, ZoomOut } from 'lucide-react'
import { type RefObject, useEffect, useRef, useState } from 'react'
import { cn } from '../../lib/cn.ts'
import { revealedText } from '../../lib/invisible.ts'
import { usePicture } from '../../markdown/use-picture.ts'
import { IconButton } from '../../ui/button.tsx'
import { CannotShow, type ViewProps, Waiting } from '../parts.tsx'
import { tooManyPixels } from '../picture-size.ts'
import TextView from './text-view.tsx'

const STEP = 1.25
const LEAST = 0.05
const MOST = 16

export default function ImageView({ file }: ViewProps) {
  const [size, setSize] = useState<{ width: number; height: number } | null>(null)
  /** Relative to the picture’s own size; null: as large as the panel is. */
  const [zoom, setZoom] = useState<number | null>(null)
  const { picture: shown, onError } = usePicture(file.path, file.version)
  const frame = useRef<HTMLDivElement>(null)
  const picture = useRef<HTMLImageElement>(null)
  const shownAt = () =>
    zoom ?? (size === null ? 1 : (picture.current?.clientWidth ?? size.width) / size.width)
  const scale = (by: number) => setZoom(Math.min(MOST, Math.max(LEAST, shownAt() * by)))
  useZoomWheel(frame, scale)
  if (tooManyPixels(file.head))
    return <CannotShow>This image is too large to preview. Download it instead.</CannotShow>
  if (shown.state === 'complex')
    return <TextView file={file} reason="This drawing is too complex to preview, so it’s shown as text." />
  if (shown.state === 'reading') return <Waiting>Loading…</Waiting>
  if (shown.state !== 'shown')
    return <CannotShow>This image is damaged, or your browser doesn’t support its format.</CannotShow>
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div
        ref={frame}
        tabIndex={0}
        role="group"
        aria-label="Picture"
        className={cn(
          'checkers flex min-h-0 flex-1 overflow-auto p-4 focus-visible:-outline-offset-2',
          zoom === null && 'items-center justify-center',
        )}
        onDoubleClick={() => setZoom(zoom === null ? 1 : null)}
      >
        <img
          ref={picture}
          src={shown.src}
          alt={revealedText(file.path)}
          onLoad={({ currentTarget: { naturalWidth: width, naturalHeight: height } }) =>
            // A drawing may have no size of its own.
            setSize(width === 0 ? null : { width, height })
          }
          onError={onError}
          style={zoom === null ? undefined : { width: (size?.width ?? 300) * zoom }}
          className={cn(
            'shadow-2',
            zoom === null ? 'max-h-full max-w-full object-contain' : 'm-auto max-w-none',
          )}
        />
      </div>
      <ZoomBar zoom={zoom} size={size} onScale={scale} onZoom={setZoom} />
    </div>
  )
}

function ZoomBar(props: {
  zoom: number | null
  size: { width: number; height: number } | null
  onScale: (by: number) => void
  onZoom: (zoom: number | null) => void
}) {
  const { zoom, size, onScale, onZoom } = props
  return (
    <div className="pointer-events-none absolute inset-x-0 bottom-4 flex justify-center">
      <div className="pointer-events-auto flex items-center rounded-xl border border-line bg-raised p-0.5 shadow-2">
        <IconButton label="Smaller" onClick={() => onScale(1 / STEP)}>
          <ZoomOut aria-hidden />
        </IconButton>
        <button
          type="button"
          title="Actual size"
          onClick={() => onZoom(1)}
          className="h-8 min-w-14 rounded-lg px-1 text-xs text-muted tabular-nums hover:bg-hover hover:text-ink pointer-coarse:h-11"
        >
          {zoom === null ? 'Fitted' : `${Math.round(zoom * 100)} %`}
        </button>
        <IconButton label="Larger" onClick={() => onScale(STEP)}>
          <ZoomIn aria-hidden />
        </IconButton>
        <IconButton label="Fit to panel" aria-pressed={zoom === null} onClick={() => onZoom(null)}>
          <Maximize aria-hidden />
        </IconButton>
        {size !== null && (
          <span className="px-2.5 text-xs text-faint tabular-nums">
            {size.width} × {size.height}
          </span>
        )}
      </div>
    </div>
  )
}

/** Ctrl or Cmd with the wheel. */
function useZoomWheel(frame: RefObject<HTMLElement | null>, scale: (by: number) => void): void {
  useEffect(() => {
    const element = frame.current
    // React listens to the wheel passively, and the page itself would grow.
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return
      event.preventDefault()
      scale(event.deltaY < 0 ? STEP : 1 / STEP)
    }
    element?.addEventListener('wheel', onWheel, { passive: false })
    return () => element?.removeEventListener('wheel', onWheel)
  })
}
