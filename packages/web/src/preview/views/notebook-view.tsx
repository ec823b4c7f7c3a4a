/** A Jupyter notebook, read only: nothing of it runs. */
import { messageOf } from '@sandlot/shared/base/errors'
import { useMemo } from 'react'
import { cn } from '../../lib/cn.ts'
import { isTooComplex } from '../../lib/drawing-cost.ts'
import { highlight } from '../../markdown/highlight.ts'
import { AttachedPictures, Markdown, MarkdownFolder } from '../../markdown/markdown.tsx'
import { drawingUrl } from '../../markdown/use-picture.ts'
import { renderAnsi } from '../../terminal/ansi-text.ts'
import { AnsiView } from '../../terminal/output-view.tsx'
import { type Cell, type Notebook, type Output, readNotebook } from '../notebook.ts'
import { CannotShow, EncodingNote, Note, useText, type ViewProps, Waiting } from '../parts.tsx'
import TextView, { Coloured } from './text-view.tsx'

const MOST_BYTES = 24 * 1024 * 1024
const MOST_CELLS = 500
/** UTF-16 units of one output. */
const MOST_CHARS = 100_000
const MOST_LINES = 1000

export default function NotebookView({ file }: ViewProps) {
  const read = useText(file, MOST_BYTES)
  const parsed = useMemo((): { notebook: Notebook } | { why: string } | null => {
    if (read.state !== 'read') return null
    if (read.more) return { why: 'This notebook is too large to preview, so it’s shown as text.' }
    try {
      return { notebook: readNotebook(JSON.parse(read.text)) }
    } catch (error) {
      return {
        why:
          error instanceof SyntaxError
            ? 'This notebook is damaged, so it’s shown as text.'
            : messageOf(error),
      }
    }
  }, [read])
  if (read.state === 'failed') return <CannotShow>{read.why}</CannotShow>
  if (read.state === 'reading' || parsed === null) return <Waiting>Loading…</Waiting>
  if (!('notebook' in parsed)) return <TextView file={file} reason={parsed.why} />
  const { cells, language } = parsed.notebook
  if (cells.length === 0) return <CannotShow>This notebook has no cells.</CannotShow>
  return (
    <>
      <EncodingNote note={read.note} />
      {cells.length > MOST_CELLS && (
        <Note>
          Showing the first {MOST_CELLS} of {cells.length} cells. Download the notebook to see the rest.
        </Note>
      )}
      <div
        tabIndex={0}
        role="group"
        aria-label={`Notebook ${file.path}`}
        className="min-h-0 flex-1 overflow-auto px-4 py-4 focus-visible:-outline-offset-2"
      >
        <MarkdownFolder value={file.path.split('/').slice(0, -1).join('/')}>
          <div className="mx-auto flex max-w-[52rem] flex-col gap-4">
            {cells.slice(0, MOST_CELLS).map((cell, place) => (
              // Cells have no identity beyond their place.
              // oxlint-disable-next-line react/no-array-index-key
              <section key={place} className="[contain-intrinsic-size:auto_8rem] [content-visibility:auto]">
                <CellView cell={cell} language={language} />
              </section>
            ))}
          </div>
        </MarkdownFolder>
      </div>
    </>
  )
}

function CellView({ cell, language }: { cell: Cell; language: string }) {
  if (cell.type === 'markdown')
    return (
      <AttachedPictures value={cell.pictures}>
        <Markdown text={cell.text} streaming={false} />
      </AttachedPictures>
    )
  if (cell.type === 'raw') return <pre className="code whitespace-pre-wrap text-muted">{cell.text}</pre>
  return (
    <div className="overflow-hidden rounded-lg border border-line">
      <div className="flex bg-sunken">
        <span className="w-11 shrink-0 py-2.5 pr-1 text-right font-mono text-2xs leading-5 text-faint select-none">
          [{cell.count ?? ' '}]
        </span>
        <pre
          className="code min-w-0 flex-1 overflow-x-auto px-3 py-2.5"
          tabIndex={0}
          role="group"
          aria-label={`Code of cell ${cell.count ?? 'that did not run'}`}
        >
          <code>
            <Coloured tokens={highlight(cell.text, language)} />
          </code>
        </pre>
      </div>
      {cell.outputs.length > 0 && (
        <div className="flex flex-col gap-2 border-t border-line px-3 py-2.5">
          {cell.outputs.map((output, place) => (
            // oxlint-disable-next-line react/no-array-index-key
            <OutputView key={place} output={output} />
          ))}
        </div>
      )}
    </div>
  )
}

function OutputView({ output }: { output: Output }) {
  switch (output.type) {
    case 'ansi':
      return <AnsiOutput text={output.text} failed={output.failed} />
    case 'image':
      return <Chart src={output.src} />
    case 'drawing':
      return <Drawing svg={output.text} />
    case 'markdown':
      return <Markdown text={output.text} streaming={false} />
    case 'math':
      return <Markdown text={asMath(output.text)} streaming={false} />
    case 'html':
      return <HtmlOutput html={output.text} />
    case 'unknown':
      return <p className="text-xs text-faint">Not shown: {output.what}</p>
  }
}

function AnsiOutput({ text, failed }: { text: string; failed: boolean }) {
  const rendered = useMemo(() => renderAnsi(text.slice(0, MOST_CHARS), MOST_LINES), [text])
  return (
    <div
      tabIndex={0}
      role="group"
      aria-label={failed ? 'Error of the cell' : 'Output of the cell'}
      className={cn('term max-h-96 overflow-auto', failed && 'rounded bg-failed-wash p-2')}
    >
      <AnsiView rendered={rendered} />
      {text.length > MOST_CHARS && <p className="text-faint">… truncated</p>}
    </div>
  )
}

function asMath(latex: string): string {
  return `$$\n${latex.trim().replace(/^\${1,2}|\${1,2}$/g, '')}\n$$`
}

/** Elements that would act by themselves, or reach out. Scripts do not run in the frame anyway. */
const ACTIVE = 'script, link, meta, base, iframe, frame, object, embed, form, noscript, template'
const LINE = 25
const HIGHEST = 480

/** In a frame without scripts, which cannot say how high it is: its rows are counted. */
function HtmlOutput({ html }: { html: string }) {
  const { text, height } = useMemo(() => {
    const { body } = new DOMParser().parseFromString(html, 'text/html')
    for (const element of body.querySelectorAll(ACTIVE)) element.remove()
    const rows = body.querySelectorAll('tr, p, li, br, h1, h2, h3, h4, pre').length
    return { text: body.innerHTML, height: Math.min(HIGHEST, Math.max(48, (rows + 1) * LINE)) }
  }, [html])
  return (
    <iframe
      sandbox=""
      title="Output of the cell"
      srcDoc={STYLE + text}
      style={{ height, colorScheme: 'light' }}
      className="w-full resize-y rounded bg-white"
    />
  )
}

const STYLE =
  '<!doctype html><style>body{margin:8px;font:13px/1.5 system-ui,sans-serif}table{border-collapse:collapse;font-size:12px}td,th{padding:3px 10px;text-align:right;border-bottom:1px solid #e5e5e5}</style>'

/** Charts of notebooks are drawn for white paper. */
function Chart({ src }: { src: string }) {
  return <img src={src} alt="Output of the cell" className="max-w-full self-start rounded bg-white" />
}

function Drawing({ svg }: { svg: string }) {
  const isComplex = useMemo(() => isTooComplex(svg), [svg])
  if (isComplex) return <p className="text-sm text-muted">This drawing is too complex to preview.</p>
  return <Chart src={drawingUrl(svg)} />
}
