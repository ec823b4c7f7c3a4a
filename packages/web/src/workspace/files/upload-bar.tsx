/**
 * Bar of uploads to the workspace: progress, failures with a retry, and the question whether to
 * skip, keep both or replace where a file exists already.
 */
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { CircleAlert, RotateCw, X } from 'lucide-react'
import { formatCount } from '../../lib/format.ts'
import { decideUploads, retryUpload, stopUploads, type Upload, useUploads } from '../../state/uploads.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { Revealed } from '../../ui/revealed.tsx'

export function UploadBar() {
  const items = useUploads((state) => state.items)
  const conflicts = items.filter(({ state }) => state === 'conflict')
  const failed = items.flatMap((item) => (item.state === 'failed' ? [item] : []))
  const moving = items.some(({ state }) => state === 'sending' || state === 'waiting')
  if (conflicts.length === 0 && failed.length === 0 && !moving) return null
  const all = items.reduce((sum, { file }) => sum + file.size, 0)
  const sent = items.reduce(
    (sum, item) => sum + (item.state === 'there' ? item.file.size : item.state === 'sending' ? item.sent : 0),
    0,
  )
  const there = items.filter(({ state }) => state === 'there').length
  const percent = all === 0 ? 0 : Math.floor((100 * sent) / all)
  const [asking] = conflicts
  return (
    <div data-testid="uploads" className="border-t border-line bg-panel text-sm">
      {asking !== undefined && <ReplaceQuestion path={asking.path} count={conflicts.length} />}
      {failed.slice(0, 3).map((item) => (
        <FailedUpload key={item.key} item={item} />
      ))}
      {failed.length > 3 && (
        <p className="px-4 py-1 text-xs text-failed">
          {formatCount(failed.length - 3, 'more was', 'more were')} not sent.
        </p>
      )}
      <div className="flex items-center gap-3 py-1.5 pr-2 pl-4">
        {moving ? (
          <>
            <p role="status" className="min-w-0 flex-1 truncate text-xs text-muted tabular-nums">
              Sending {formatCount(items.length, 'file')}: {there} there · {formatBytes(sent)} of{' '}
              {formatBytes(all)}
            </p>
            <div
              role="progressbar"
              aria-label="Sending files"
              aria-valuenow={percent}
              className="h-1 w-24 overflow-hidden rounded-full bg-line-strong"
            >
              <div className="h-full bg-accent" style={{ width: `${percent}%` }} />
            </div>
          </>
        ) : (
          <p className="flex-1 text-xs text-muted">
            {formatCount(conflicts.length + failed.length, 'file is', 'files are')} not in your workspace.
          </p>
        )}
        <IconButton
          label={moving ? 'Stop sending' : 'Dismiss'}
          className="size-7"
          onClick={() => stopUploads()}
        >
          <X aria-hidden />
        </IconButton>
      </div>
    </div>
  )
}

function FailedUpload({ item }: { item: Extract<Upload, { state: 'failed' }> }) {
  return (
    <p role="alert" className="flex items-center gap-2 px-4 py-1.5 text-xs text-failed">
      <CircleAlert className="size-3.5 shrink-0" aria-hidden />
      <span className="min-w-0 flex-1 [overflow-wrap:anywhere]">
        <Revealed text={item.path} />: {item.problem}
      </span>
      <IconButton
        label={`Send ${item.file.name} again`}
        className="size-7"
        onClick={() => retryUpload(item.key)}
      >
        <RotateCw aria-hidden />
      </IconButton>
    </p>
  )
}

function ReplaceQuestion({ path, count }: { path: string; count: number }) {
  return (
    <div
      role="group"
      aria-label={`Replace ${path}?`}
      className="flex flex-wrap items-center gap-2 border-b border-waiting-line bg-waiting-wash px-4 py-2.5"
    >
      <p role="alert" className="min-w-0 flex-1 basis-40 [overflow-wrap:anywhere]">
        <span className="font-medium">
          <Revealed text={path} />
        </span>{' '}
        is there already.
      </p>
      <span className="ml-auto flex flex-wrap justify-end gap-2">
        <Button size="sm" onClick={() => decideUploads('skip', false)}>
          Skip
        </Button>
        <Button size="sm" onClick={() => decideUploads('both', false)}>
          Keep both
        </Button>
        <Button size="sm" variant="danger" onClick={() => decideUploads('replace', false)}>
          Replace
        </Button>
        {count > 1 && (
          <>
            <Button size="sm" onClick={() => decideUploads('skip', true)}>
              Skip all {count}
            </Button>
            <Button size="sm" variant="danger" onClick={() => decideUploads('replace', true)}>
              Replace all {count}
            </Button>
          </>
        )}
      </span>
    </div>
  )
}
