import { Download, PanelRight } from 'lucide-react'
import { memo, useMemo } from 'react'
import { type DiffLine, lineDiff } from '@sandlot/shared/transcript/line-diff'
import { useWorkspace } from '../state/use-workspace.ts'
import { fileUrl } from '../net/files.ts'

const MARK = { same: ' ', add: '+', del: '−' }
const WORD = { same: '', add: 'added: ', del: 'removed: ' }
const MAX_LINES = 400
const ACTION =
  'inline-flex size-7 items-center justify-center rounded-md text-faint hover:bg-hover hover:text-ink pointer-coarse:size-11'

/** A unified diff of one file, with both line numbers. */
export const DiffView = memo(function DiffView(props: {
  path: string
  oldText?: string | null
  newText: string
  /** The file as it is now, relative to the workspace; null: it cannot be had. */
  file: string | null
}) {
  const diff = useMemo(() => lineDiff(props.oldText, props.newText), [props.oldText, props.newText])
  const lines = diff.hunks.reduce((sum, hunk) => sum + hunk.length, 0)
  const { file } = props
  let left = MAX_LINES
  return (
    <div className="overflow-hidden rounded-md border border-line bg-sunken">
      <div className="flex items-center gap-3 border-b border-line px-3 py-1.5">
        <span className="min-w-0 flex-1 truncate font-mono text-xs text-muted" title={props.path}>
          {props.path}
        </span>
        <DiffStat added={diff.added} removed={diff.removed} />
        {file !== null && <FileLinks path={props.path} file={file} />}
      </div>
      <div
        className="code max-h-96 overflow-auto py-1 text-xs"
        tabIndex={0}
        role="group"
        aria-label={`Changes to ${props.path}`}
      >
        {diff.hunks.length === 0 && <p className="px-3 py-1 font-sans text-faint">No text changes.</p>}
        {diff.hunks.map((hunk, index) => {
          const shown = hunk.slice(0, Math.max(0, left))
          left -= shown.length
          return (
            // oxlint-disable-next-line react/no-array-index-key
            <div key={index}>
              {index > 0 && shown.length > 0 && (
                <div className="my-1 border-y border-line bg-hover px-3 text-faint select-none">⋯</div>
              )}
              {shown.map((line) => (
                <DiffRow key={`${line.oldNo ?? ''}:${line.newNo ?? ''}`} line={line} />
              ))}
            </div>
          )
        })}
        {lines > MAX_LINES && (
          <p className="px-3 py-1 font-sans text-faint">
            {lines - MAX_LINES} more changed lines aren’t shown.
          </p>
        )}
      </div>
    </div>
  )
})

function FileLinks({ path, file }: { path: string; file: string }) {
  const { openFile } = useWorkspace()
  return (
    <span className="-my-1 -mr-1.5 flex shrink-0">
      <button
        type="button"
        aria-label={`Open ${path}`}
        title="Open current version"
        onClick={() => openFile(file)}
        className={ACTION}
      >
        <PanelRight className="size-3.5" aria-hidden />
      </button>
      <a
        href={fileUrl(file, { download: true })}
        download
        aria-label={`Download ${path}`}
        title="Download current version"
        className={ACTION}
      >
        <Download className="size-3.5" aria-hidden />
      </a>
    </span>
  )
}

export function DiffRow(props: { line: DiffLine }) {
  const { line } = props
  return (
    <div className={`diff-line ${line.type}`}>
      <span className="no">{line.oldNo}</span>
      <span className="no">{line.newNo}</span>
      <span className="mark" aria-hidden>
        {MARK[line.type]}
      </span>
      <span>
        {WORD[line.type] !== '' && <span className="sr-only">{WORD[line.type]}</span>}
        {line.text}
      </span>
    </div>
  )
}

/** `+12 −3` */
export function DiffStat(props: { added: number; removed: number }) {
  return (
    <span className="shrink-0 font-mono text-xs tabular-nums">
      <span className="text-well">+{props.added}</span> <span className="text-failed">−{props.removed}</span>
    </span>
  )
}
