/** A PDF: only the pages near the screen are drawn, and only their parts of the file are read. */
import { useVirtualizer } from '@tanstack/react-virtual'
import { ZoomIn, ZoomOut } from 'lucide-react'
import { type RefObject, useEffect, useRef, useState } from 'react'
import { formatCount } from '../../lib/format.ts'
import { fileUrl } from '../../net/files.ts'
import { IconButton } from '../../ui/button.tsx'
import { CannotShow, type ViewProps, Waiting } from '../parts.tsx'
import { openPdf, type Pdf, PdfProblem } from '../pdf.ts'

const GAP = 12
const STEP = 1.2

export default function PdfView({ file }: ViewProps) {
  const [pdf, setPdf] = useState<Pdf | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  useEffect(() => {
    const opening = openPdf(fileUrl(file.path), file.size)
    setPdf(null)
    setProblem(null)
    opening.pdf.then(setPdf, (error: unknown) =>
      setProblem(error instanceof PdfProblem ? error.message : 'This PDF is damaged. Download it instead.'),
    )
    return () => opening.close()
  }, [file])
  if (problem !== null) return <CannotShow>{problem}</CannotShow>
  if (pdf === null) return <Waiting>Loading…</Waiting>
  return <Pages pdf={pdf} onProblem={setProblem} path={file.path} />
}

function Pages(props: { pdf: Pdf; path: string; onProblem: (why: string) => void }) {
  const { pdf } = props
  const scrolled = useRef<HTMLDivElement>(null)
  const room = useWidth(scrolled)
  const [zoom, setZoom] = useState(1)
  const [sizes, setSizes] = useState<ReadonlyMap<number, { width: number; height: number }>>(new Map())
  const width = Math.max(120, Math.min(room - 32, 900)) * zoom
  const heightOf = (at: number) => {
    const size = sizes.get(at) ?? pdf.first
    return Math.round((size.height / size.width) * width)
  }
  const pages = useVirtualizer({
    count: pdf.pages,
    getScrollElement: () => scrolled.current,
    estimateSize: (at) => heightOf(at) + GAP,
    overscan: 1,
    paddingStart: GAP,
  })
  useEffect(() => pages.measure(), [pages, width, sizes])
  const shown = pages.getVirtualItems()
  const top = pages.scrollOffset ?? 0
  const current = shown.find(({ end }) => end > top + 80)?.index ?? 0
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div
        ref={scrolled}
        tabIndex={0}
        role="group"
        aria-label={`Pages of ${props.path}`}
        className="min-h-0 flex-1 overflow-auto bg-sunken focus-visible:-outline-offset-2"
      >
        <div className="relative mx-auto" style={{ height: pages.getTotalSize(), width }}>
          {room > 0 &&
            shown.map(({ index, start, key }) => (
              <div
                key={key}
                className="absolute left-0 bg-white shadow-2"
                style={{ top: start, width, height: heightOf(index) }}
              >
                <Page
                  pdf={pdf}
                  at={index}
                  width={width}
                  onSize={(size) =>
                    setSizes((known) => (known.has(index) ? known : new Map(known).set(index, size)))
                  }
                  onProblem={props.onProblem}
                />
              </div>
            ))}
        </div>
      </div>
      <ZoomBar at={`${current + 1} of ${formatCount(pdf.pages, 'page')}`} zoom={zoom} onZoom={setZoom} />
    </div>
  )
}

function ZoomBar(props: { at: string; zoom: number; onZoom: (zoom: number) => void }) {
  const { at, zoom, onZoom } = props
  return (
    <div className="pointer-events-none absolute inset-x-0 bottom-4 flex justify-center">
      <div className="pointer-events-auto flex items-center rounded-xl border border-line bg-raised p-0.5 shadow-2">
        <span className="px-2.5 text-xs text-muted tabular-nums">{at}</span>
        <IconButton label="Smaller" disabled={zoom < 0.5} onClick={() => onZoom(zoom / STEP)}>
          <ZoomOut aria-hidden />
        </IconButton>
        <button
          type="button"
          title="Fit to width"
          onClick={() => onZoom(1)}
          className="h-8 min-w-12 rounded-lg px-1 text-xs text-muted tabular-nums hover:bg-hover hover:text-ink pointer-coarse:h-11"
        >
          {Math.round(zoom * 100)} %
        </button>
        <IconButton label="Larger" disabled={zoom > 4} onClick={() => onZoom(zoom * STEP)}>
          <ZoomIn aria-hidden />
        </IconButton>
      </div>
    </div>
  )
}

/** Zero until it is measured. */
function useWidth(box: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const observer = new ResizeObserver(() => setWidth(element.clientWidth))
    observer.observe(element)
    return () => observer.disconnect()
  }, [box])
  return width
}

function Page(props: {
  pdf: Pdf
  at: number
  width: number
  onSize: (size: { width: number; height: number }) => void
  onProblem: (why: string) => void
}) {
  const { pdf, at, width } = props
  const canvas = useRef<HTMLCanvasElement>(null)
  const letters = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (canvas.current === null || letters.current === null) return
    const controller = new AbortController()
    pdf
      .draw(at, width, canvas.current, letters.current, controller.signal)
      .then(props.onSize, (error: unknown) => {
        if (controller.signal.aborted) return
        if (error instanceof PdfProblem) props.onProblem(error.message)
        else console.warn(`Couldn’t draw page ${at + 1}.`, error)
      })
    return () => controller.abort()
    // The others only take what comes of it.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [pdf, at, width])
  return (
    <>
      <canvas ref={canvas} className="absolute inset-0 size-full" aria-hidden />
      <div ref={letters} className="pdf-letters" aria-label={`Page ${at + 1}`} role="group" />
    </>
  )
}
