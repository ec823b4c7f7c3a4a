import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { CircleAlert, File as FileIcon, RotateCw, X } from 'lucide-react'
import { IconButton } from '../../ui/button.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import type { Attachment } from '../../state/attachments.ts'
import type { ComposerAttachments } from './use-attachments.ts'

/** Attachments of the message that is being written. */
export function AttachmentStrip(props: { attachments: ComposerAttachments }) {
  const { items, problem, remove, lost } = props.attachments
  if (items.length === 0 && problem === null) return null
  return (
    <div className="flex flex-col gap-2 px-4 pt-4">
      {items.length > 0 && (
        <ul aria-label="Attached files" data-testid="attachments" className="flex flex-wrap gap-2.5">
          {items.map((item) => (
            <li key={item.key} data-state={item.state} className="group/image relative">
              {item.preview === null ? (
                <Chip item={item} />
              ) : (
                <Picture item={item} preview={item.preview} onLost={() => lost(item.key)} />
              )}
              <button
                type="button"
                aria-label={`Remove ${item.name}`}
                title={`Remove ${item.name}`}
                onClick={() => remove(item.key)}
                className="absolute -top-2 -right-2 inline-flex size-6 items-center justify-center rounded-full border border-line-strong bg-raised text-muted shadow-1 hover:bg-hover hover:text-ink pointer-coarse:size-11"
              >
                <X className="size-3.5" aria-hidden />
              </button>
            </li>
          ))}
        </ul>
      )}
      {items.map((item) =>
        item.state === 'failed' ? (
          <p key={item.key} role="alert" className="flex items-center gap-1.5 text-xs text-failed">
            <CircleAlert className="size-3.5 shrink-0" aria-hidden />
            <span className="min-w-0 [overflow-wrap:anywhere]">
              {item.name}: {item.problem}
            </span>
            {item.again !== null && (
              <IconButton
                label={`Retry ${item.name}`}
                className="-my-2 size-7 pointer-coarse:size-11"
                onClick={item.again}
              >
                <RotateCw aria-hidden />
              </IconButton>
            )}
          </p>
        ) : null,
      )}
      {problem !== null && (
        <p role="alert" className="flex items-center gap-1.5 text-xs text-failed">
          <CircleAlert className="size-3.5 shrink-0" aria-hidden /> {problem}
        </p>
      )}
    </div>
  )
}

function Chip({ item }: { item: Attachment }) {
  return (
    <div
      title={`${item.name}, ${formatBytes(item.bytes)}`}
      className="relative flex h-18 w-44 flex-col max-sm:w-38 justify-center gap-1 overflow-hidden rounded-xl border border-line-strong bg-panel px-3"
    >
      <span className="flex items-center gap-2 text-sm">
        {item.state === 'failed' ? (
          <CircleAlert className="size-4 shrink-0 text-failed" aria-hidden />
        ) : (
          <FileIcon className="size-4 shrink-0 text-faint" aria-hidden />
        )}
        <span className="min-w-0 truncate">
          <Revealed text={item.name} />
        </span>
      </span>
      <span className="text-xs text-muted tabular-nums">{formatBytes(item.bytes)}</span>
      <Progress item={item} />
    </div>
  )
}

function Progress({ item }: { item: Attachment }) {
  if (item.state !== 'sending') return null
  const done = Math.round(item.part * 100)
  return (
    <div
      role="progressbar"
      aria-label={`Sending ${item.name}`}
      aria-valuenow={done}
      className="absolute inset-x-2 bottom-2 h-1 overflow-hidden rounded-full bg-line-strong"
    >
      <div className="h-full bg-accent" style={{ width: `${done}%` }} />
    </div>
  )
}

function Picture(props: { item: Attachment; preview: string; onLost: () => void }) {
  const { item } = props
  return (
    <div className="relative size-18 overflow-hidden rounded-xl border border-line-strong bg-panel">
      <img
        src={props.preview}
        alt={`${item.name}, ${formatBytes(item.bytes)}`}
        title={`${item.name}, ${formatBytes(item.bytes)}`}
        onError={props.onLost}
        className={`size-full object-cover ${item.state === 'there' ? '' : 'opacity-40'}`}
      />
      <Progress item={item} />
      {item.state === 'failed' && (
        <CircleAlert className="absolute inset-0 m-auto size-6 text-failed" aria-hidden />
      )}
    </div>
  )
}
