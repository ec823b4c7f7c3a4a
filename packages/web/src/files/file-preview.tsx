/**
 * One file of the workspace as it is now: an image or the beginning of a text, to open or to save.
 */
import { messageOf } from '@sandlot/shared/errors'
import { Download, ExternalLink } from 'lucide-react'
import { useEffect, useState } from 'react'
import { revealedText } from '../lib/invisible.ts'
import { fileUrl, lookAtFile, type SeenFile } from '../net/files.ts'
import { Alert } from '../ui/alert.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { TitledDialog } from '../ui/titled-dialog.tsx'

export function FilePreview(props: { path: string; open: boolean; onOpenChange: (open: boolean) => void }) {
  const { path, ...dialog } = props
  return (
    <TitledDialog {...dialog} title={revealedText(path)} size="max-h-[calc(100dvh-2rem)] w-[48rem]">
      <FileContent path={path} />
    </TitledDialog>
  )
}

export function FileContent(props: { path: string }) {
  const { path } = props
  const [seen, setSeen] = useState<SeenFile | { kind: 'unreadable'; why: string } | null>(null)
  useEffect(() => {
    const controller = new AbortController()
    lookAtFile(path, controller.signal).then(setSeen, (error: unknown) => {
      if (!controller.signal.aborted) setSeen({ kind: 'unreadable', why: messageOf(error) })
    })
    return () => controller.abort()
  }, [path])
  if (seen === null)
    return (
      <p role="status" className="flex items-center gap-2 p-5 text-sm text-muted">
        <Spinner /> Opening the file…
      </p>
    )
  if (seen.kind === 'gone' || seen.kind === 'unreadable')
    return (
      <div className="p-5">
        <Alert>{seen.kind === 'gone' ? GONE : seen.why}</Alert>
      </div>
    )
  const link =
    'inline-flex items-center gap-1.5 rounded-lg px-2.5 py-1.5 text-sm hover:bg-hover max-md:min-h-11'
  return (
    <>
      <div className="min-h-24 flex-1 overflow-auto bg-sunken">
        {seen.kind === 'image' && (
          <img src={fileUrl(path)} alt={path} className="mx-auto max-h-[70dvh] max-w-full object-contain" />
        )}
        {seen.kind === 'text' && (
          <pre
            className="code max-h-[70dvh] overflow-auto p-5"
            tabIndex={0}
            aria-label={`Content of ${path}`}
          >
            {seen.text}
            {seen.more && '\n…'}
          </pre>
        )}
        {seen.kind === 'other' && (
          <p className="p-5 text-sm text-muted">
            A file of this kind is not shown here. Download it to open it.
          </p>
        )}
      </div>
      <div className="flex justify-end gap-1 border-t border-line px-3 py-2">
        {seen.kind !== 'other' && (
          <a href={fileUrl(path)} target="_blank" rel="noopener" className={link}>
            <ExternalLink className="size-4" aria-hidden /> Open in a new tab
          </a>
        )}
        <a href={fileUrl(path, { download: true })} download className={link}>
          <Download className="size-4" aria-hidden /> Download
        </a>
      </div>
    </>
  )
}

const GONE = 'This file is not in your workspace any more.'
