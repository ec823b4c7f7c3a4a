/** A file that a call wrote or an answer names, small; a click opens it in the dock. */
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import {
  AudioLines,
  File,
  FileChartColumn,
  FileText,
  Globe,
  Image,
  type LucideIcon,
  Notebook,
  Sheet,
  Video,
} from 'lucide-react'
import { useEffect, useMemo, useState } from 'react'
import { useReading } from '../state/reading.ts'
import { useWorkspace } from '../state/use-workspace.ts'
import { cn } from '../lib/cn.ts'
import { revealedText } from '../lib/invisible.ts'
import { useSeen } from '../lib/use-seen.ts'
import { WorkspaceImage } from '../markdown/workspace-file.tsx'
import { type Kind, kindByName } from './kinds.ts'
import { filesNamed } from './named-files.ts'
import { openFile as readHead } from './source.ts'
import { VIEWS } from './views.ts'

const ICONS: Partial<Record<Kind, LucideIcon>> = {
  image: Image,
  pdf: FileChartColumn,
  table: Sheet,
  markdown: FileText,
  notebook: Notebook,
  audio: AudioLines,
  video: Video,
  page: Globe,
}

/** `flat`: within a frame that is there already. */
export function FileCard(props: { path: string; flat?: boolean }) {
  const { path, flat = false } = props
  const { openFile } = useWorkspace()
  const [element, seen] = useSeen<HTMLDivElement>()
  const [size, setSize] = useState<number | null | undefined>()
  const kind = kindByName(path) ?? 'bytes'
  useEffect(() => {
    if (!seen || kind === 'image') return
    const controller = new AbortController()
    readHead(path, controller.signal).then(
      (file) => setSize(file?.size ?? null),
      // Its name stays, and opening it says what is wrong.
      () => {},
    )
    return () => controller.abort()
  }, [seen, path, kind])
  if (kind === 'image') return <WorkspaceImage path={path} alt={path.slice(path.lastIndexOf('/') + 1)} />
  const Icon = ICONS[kind] ?? File
  const isMissing = size === null
  return (
    <div ref={element}>
      <button
        type="button"
        data-testid="file-card"
        disabled={isMissing}
        onClick={() => openFile(path)}
        className={cn(
          'group flex w-full items-center gap-3 text-left hover:bg-hover disabled:pointer-events-none',
          flat
            ? 'min-h-11 border-t border-line px-3 py-1.5 focus-visible:-outline-offset-2'
            : 'min-h-14 rounded-xl border border-line bg-raised px-3 py-2 shadow-1',
        )}
      >
        <span
          className={cn(
            'inline-flex shrink-0 items-center justify-center rounded-lg bg-accent-wash text-accent',
            flat ? 'size-7' : 'size-9',
          )}
        >
          <Icon className={flat ? 'size-4' : 'size-4.5'} aria-hidden />
        </span>
        <span className="min-w-0 flex-1">
          <span className="block truncate text-sm font-medium text-ink">
            {revealedText(path.slice(path.lastIndexOf('/') + 1))}
          </span>
          <span className="block truncate text-xs text-muted tabular-nums">
            {isMissing
              ? 'No longer in your workspace'
              : `${VIEWS[kind].label}${size === undefined ? '' : ` · ${formatBytes(size)}`}`}
          </span>
        </span>
        {!isMissing && (
          <span className="shrink-0 px-1 text-xs text-muted group-hover:text-ink" aria-hidden>
            Open
          </span>
        )}
      </button>
    </div>
  )
}

/** Files that an answer names and that are looked at rather than read: below it, to open. */
export function AnswerFiles(props: { text: string }) {
  const { access } = useReading()
  const files = useMemo(() => filesNamed(props.text), [props.text])
  if (access !== 'own' || files.length === 0) return null
  return (
    <ul aria-label="Files of this answer" className="mt-3 flex flex-col gap-2">
      {files.map((path) => (
        <li key={path}>
          <FileCard path={path} />
        </li>
      ))}
    </ul>
  )
}
