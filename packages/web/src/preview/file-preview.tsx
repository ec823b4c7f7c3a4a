/**
 * One file of the workspace as it is now, shown by what it is. Fills its parent, which is a column.
 */
import { messageOf } from '@sandlot/shared/base/errors'
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { Download, ExternalLink, SquarePen } from 'lucide-react'
import { type ReactNode, Suspense, useEffect, useState } from 'react'
import { cn } from '../lib/cn.ts'
import { revealedText } from '../lib/invisible.ts'
import { EDITED_BYTES, fileUrl } from '../net/files.ts'
import { Alert } from '../ui/alert.tsx'
import { Boundary } from '../ui/boundary.tsx'
import { IconButton } from '../ui/button.tsx'
import { CannotShow, Waiting } from './parts.tsx'
import { type FileHead, openFile } from './source.ts'
import { textView as TextView, VIEWS } from './views.ts'

type Seen =
  | { state: 'opening' }
  | { state: 'missing' }
  | { state: 'open'; file: FileHead }
  | { state: 'unreadable'; why: string }

/**
 * `version`: changes with the file, where that is known; it is read again then. `lead`: stands
 * before its name. `onEdit`: offered for a text that can be edited in the page.
 */
export function FilePreview(props: {
  path: string
  version?: string
  lead?: ReactNode
  onEdit?: () => void
}) {
  const { path, version } = props
  const seen = useOpenedFile(path, version)
  const [asSource, setAsSource] = useState(false)
  useEffect(() => setAsSource(false), [path])
  const file = seen.state === 'open' && seen.file.path === path ? seen.file : undefined
  return (
    <section
      aria-label={`Preview of ${path}`}
      data-testid="file-preview"
      className="flex min-h-0 flex-1 flex-col"
    >
      <div
        className={cn(
          'flex h-13 shrink-0 items-center gap-1 border-b border-line pr-2',
          props.lead === undefined ? 'pl-4' : 'pl-2',
        )}
      >
        {props.lead}
        <div className="min-w-0 flex-1">
          <h2 className="truncate text-sm leading-4.5 font-medium" title={revealedText(path)}>
            {revealedText(path.slice(path.lastIndexOf('/') + 1))}
          </h2>
          <p className="truncate text-xs leading-4 text-muted tabular-nums">
            {file === undefined ? ' ' : `${VIEWS[file.kind].label} · ${formatBytes(file.size)}`}
          </p>
        </div>
        {file !== undefined && props.onEdit !== undefined && isEdited(file) && (
          <IconButton label="Edit" onClick={props.onEdit}>
            <SquarePen aria-hidden />
          </IconButton>
        )}
        {file !== undefined && <Actions file={file} asSource={asSource} onSource={setAsSource} />}
      </div>
      {seen.state === 'opening' && <Waiting>Loading…</Waiting>}
      {(seen.state === 'missing' || seen.state === 'unreadable') && (
        <div className="p-5">
          <Alert>{seen.state === 'missing' ? 'This file is no longer in your workspace.' : seen.why}</Alert>
        </div>
      )}
      {file !== undefined && <Shown file={file} asSource={asSource} />}
    </section>
  )
}

function useOpenedFile(path: string, version: string | undefined): Seen {
  const [seen, setSeen] = useState<Seen>({ state: 'opening' })
  useEffect(() => {
    const controller = new AbortController()
    // A file that only changed stays on the screen until it is read again.
    setSeen((now) => (now.state === 'open' && now.file.path === path ? now : { state: 'opening' }))
    openFile(path, controller.signal).then(
      (file) =>
        setSeen((now) => {
          if (file === null) return { state: 'missing' }
          const isKnown = now.state === 'open' && file.version !== '' && now.file.version === file.version
          return isKnown && now.file.path === path ? now : { state: 'open', file }
        }),
      (error: unknown) => {
        if (!controller.signal.aborted) setSeen({ state: 'unreadable', why: messageOf(error) })
      },
    )
    return () => controller.abort()
  }, [path, version])
  return seen
}

function Shown({ file, asSource }: { file: FileHead; asSource: boolean }) {
  const { label, view: View } = VIEWS[file.kind]
  return (
    <Boundary
      key={`${file.path} ${file.version} ${asSource}`}
      fallback={<CannotShow>Can’t preview this file. Download it instead.</CannotShow>}
    >
      <Suspense fallback={<Waiting>Opening the {label.toLowerCase()}…</Waiting>}>
        {asSource ? <TextView file={file} /> : <View file={file} />}
      </Suspense>
    </Boundary>
  )
}

const LINK =
  'inline-flex size-8 shrink-0 items-center justify-center rounded-lg text-muted hover:bg-hover hover:text-ink pointer-coarse:size-11 [&_svg]:size-4'

function Actions(props: { file: FileHead; asSource: boolean; onSource: (on: boolean) => void }) {
  const { file, asSource, onSource } = props
  // A drawing is text, and shown as a picture.
  const hasSource = VIEWS[file.kind].source === true || file.type === 'image/svg+xml'
  return (
    <>
      {hasSource && (
        <div role="group" aria-label="Show as" className="mr-1 flex shrink-0 rounded-lg bg-active p-0.5">
          {[false, true].map((one) => (
            <button
              key={String(one)}
              type="button"
              aria-pressed={asSource === one}
              onClick={() => onSource(one)}
              className={cn(
                'h-6 rounded-md px-2.5 text-xs pointer-coarse:h-10',
                asSource === one ? 'bg-raised font-medium text-ink shadow-1' : 'text-muted hover:text-ink',
              )}
            >
              {one ? 'Source' : 'Preview'}
            </button>
          ))}
        </div>
      )}
      {opensInTab(file) && (
        <a
          href={fileUrl(file.path)}
          target="_blank"
          rel="noopener"
          aria-label="Open in a new tab"
          title="Open in a new tab"
          className={LINK}
        >
          <ExternalLink aria-hidden />
        </a>
      )}
      <a
        href={fileUrl(file.path, { download: true })}
        download
        aria-label="Download"
        title="Download"
        className={LINK}
      >
        <Download aria-hidden />
      </a>
    </>
  )
}

function isEdited({ type, size }: FileHead): boolean {
  return size <= EDITED_BYTES && (type.startsWith('text/') || type === 'image/svg+xml')
}

/** The service sends the others to be saved. */
function opensInTab({ type }: FileHead): boolean {
  return /^(text|audio|video|image)\//.test(type) && type !== 'image/svg+xml'
}
