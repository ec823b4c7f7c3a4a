/** A changed file: what became of it, its path, and how much. */
import type { FileChange } from '@sandlot/shared/chat/file-changes'
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { formatCount } from '../lib/format.ts'
import { cn } from '../lib/cn.ts'
import { Revealed } from '../ui/revealed.tsx'

const KIND = {
  created: { mark: 'A', word: 'Created', tone: 'text-well' },
  changed: { mark: 'M', word: 'Changed', tone: 'text-accent' },
  removed: { mark: 'D', word: 'Removed', tone: 'text-failed' },
} as const

/** `onOpen`: where the reader can open it. */
export function FileLine(props: { file: FileChange; onOpen?: () => void }) {
  const { path, kind, size, lines } = props.file
  const { mark, word, tone } = KIND[kind]
  const cut = path.lastIndexOf('/') + 1
  const name = (
    // The folder gives way first: a name that is cut says nothing.
    <span className="flex min-w-0 font-mono text-xs leading-5">
      <span className="min-w-0 truncate text-muted">
        <Revealed text={path.slice(0, cut)} />
      </span>
      <span className={cn('max-w-full shrink-0 truncate text-ink', kind === 'removed' && 'line-through')}>
        <Revealed text={path.slice(cut)} />
      </span>
    </span>
  )
  return (
    <span className="flex min-w-0 flex-1 items-center gap-2.5 text-sm">
      <span className={cn('w-3 shrink-0 text-center font-mono text-xs font-medium', tone)} title={word}>
        <span aria-hidden>{mark}</span>
        <span className="sr-only">{word}: </span>
      </span>
      {props.onOpen === undefined ? (
        <span className="min-w-0 flex-1" title={path}>
          {name}
        </span>
      ) : (
        <button
          type="button"
          title={`Open ${path}`}
          onClick={props.onOpen}
          className="min-w-0 flex-1 rounded py-1 text-left hover:underline pointer-coarse:min-h-11"
        >
          {name}
        </button>
      )}
      {lines === undefined ? (
        <span className="shrink-0 text-xs text-faint tabular-nums">{formatBytes(size)}</span>
      ) : (
        <LineCounts lines={lines} />
      )}
    </span>
  )
}

/** `+12 −3`; nothing where lines are not known. */
export function LineCounts(props: { lines: { added: number; removed: number } | undefined }) {
  const { lines } = props
  if (lines === undefined) return null
  return (
    <span className="shrink-0 font-mono text-xs tabular-nums">
      <span className="text-well">
        <span className="sr-only">lines added: </span>+{lines.added.toLocaleString('en')}
      </span>{' '}
      <span className="text-failed">
        <span className="sr-only">lines removed: </span>−{lines.removed.toLocaleString('en')}
      </span>
    </span>
  )
}

export function MoreFiles(props: { more: number }) {
  if (props.more === 0) return null
  return <li className="py-1 pl-5.5 text-sm text-faint">and {formatCount(props.more, 'more file')}</li>
}
