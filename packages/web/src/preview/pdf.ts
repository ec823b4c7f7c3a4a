/** pdf.js, bounded: what a PDF may cost here before it is given up. */
import {
  GlobalWorkerOptions,
  getDocument,
  type PDFDocumentProxy,
  RenderingCancelledException,
  TextLayer,
} from 'pdfjs-dist'
// oxlint-disable-next-line import/default
import workerUrl from 'pdfjs-dist/build/pdf.worker.min.mjs?url'

GlobalWorkerOptions.workerSrc = workerUrl

/** Tables of characters, letters and decoders that a PDF may need, each fetched when one does. */
const DATA = Object.fromEntries(
  Object.entries({
    ...import.meta.glob<string>('/node_modules/pdfjs-dist/cmaps/*.bcmap', {
      query: '?url',
      import: 'default',
      eager: true,
    }),
    ...import.meta.glob<string>('/node_modules/pdfjs-dist/standard_fonts/*.{pfb,ttf}', {
      query: '?url',
      import: 'default',
      eager: true,
    }),
    ...import.meta.glob<string>('/node_modules/pdfjs-dist/wasm/{jbig2,openjpeg,qcms_bg}.wasm', {
      query: '?url',
      import: 'default',
      eager: true,
    }),
  }).map(([path, url]) => [path.slice(path.lastIndexOf('/') + 1), url]),
)

class OwnData {
  async fetch({ filename }: { filename: string }): Promise<Uint8Array> {
    const url = DATA[filename]
    if (url === undefined) throw new Error(`pdf: there is no ${filename}`)
    return new Uint8Array(await (await fetch(url)).arrayBuffer())
  }
}

const MOST_BYTES = 200 * 1024 * 1024
const MOST_PAGES = 5000
/** The most pixels of one picture in it, and of one rendered page. */
const MOST_PIXELS = 16_000_000
const CHUNK_BYTES = 256 * 1024
/** A page that takes longer is made to take for ever. */
const PATIENCE_MS = 20_000

/** With a sentence for the reader. */
export class PdfProblem extends Error {
  override readonly name = 'PdfProblem'
}

export interface Pdf {
  pages: number
  first: { width: number; height: number }
  /** Resolves with the size of the page. Rejects with `PdfProblem` when it costs too much. */
  draw: (
    at: number,
    width: number,
    canvas: HTMLCanvasElement,
    letters: HTMLElement,
    signal: AbortSignal,
  ) => Promise<{ width: number; height: number }>
}

const TOO_LARGE = 'This PDF is too large to preview. Download it instead.'

export function openPdf(url: string, size: number): { pdf: Promise<Pdf>; close: () => void } {
  if (size > MOST_BYTES) return { pdf: Promise.reject(new PdfProblem(TOO_LARGE)), close: () => {} }
  const task = getDocument({
    url,
    rangeChunkSize: CHUNK_BYTES,
    disableAutoFetch: true,
    disableStream: true,
    useWorkerFetch: false,
    BinaryDataFactory: OwnData,
    maxImageSize: MOST_PIXELS,
    canvasMaxAreaInBytes: MOST_PIXELS * 4,
    enableXfa: false,
    verbosity: 0,
  })
  // Ends the worker with it, whatever that is doing.
  const close = () => void task.destroy()
  const give = <T>(work: Promise<T>) => orGiveUp(work, close)
  task.onPassword = () => {
    refuse.reject(new PdfProblem('This PDF is password-protected. Download it instead.'))
    close()
  }
  const refuse = Promise.withResolvers<never>()
  refuse.promise.catch(() => {})
  const opened = give(task.promise).then((document) => made(document, give))
  return { pdf: Promise.race([opened, refuse.promise]), close }
}

async function made(document: PDFDocumentProxy, give: <T>(work: Promise<T>) => Promise<T>): Promise<Pdf> {
  if (document.numPages > MOST_PAGES) throw new PdfProblem(TOO_LARGE)
  const sizeOf = async (at: number) => {
    const page = await give(document.getPage(at + 1))
    const { width, height } = page.getViewport({ scale: 1 })
    return { page, width, height }
  }
  const { width, height } = await sizeOf(0)
  return {
    pages: document.numPages,
    first: { width, height },
    draw: async (at, wide, canvas, letters, signal) => {
      const { page, ...size } = await sizeOf(at)
      if (signal.aborted) return size
      const viewport = page.getViewport({ scale: wide / size.width })
      const dense = Math.min(devicePixelRatio, Math.sqrt(MOST_PIXELS / (viewport.width * viewport.height)))
      canvas.width = Math.max(1, Math.floor(viewport.width * dense))
      canvas.height = Math.max(1, Math.floor(viewport.height * dense))
      const drawing = page.render({
        canvas,
        viewport,
        transform: [dense, 0, 0, dense, 0, 0],
      })
      signal.addEventListener('abort', () => drawing.cancel(), { once: true })
      try {
        await give(drawing.promise)
      } catch (error) {
        if (error instanceof RenderingCancelledException) return size
        throw error
      }
      letters.replaceChildren()
      letters.style.setProperty('--total-scale-factor', String(viewport.scale))
      await give(
        new TextLayer({ textContentSource: page.streamTextContent(), container: letters, viewport }).render(),
      )
      page.cleanup()
      return size
    },
  }
}

async function orGiveUp<T>(work: Promise<T>, close: () => void): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    close()
    late.reject(new PdfProblem(TOO_LARGE))
  }, PATIENCE_MS)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
