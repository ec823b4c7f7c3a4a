import { ExternalLink } from 'lucide-react'
import { useMemo } from 'react'
import type { ToolCallContent } from '@sandlot/shared/call'
import { attachmentsOf } from './call-attachments.ts'

/** Links (such as where to sign in) and images of a call. */
export function ToolAttachments(props: { content: readonly ToolCallContent[]; title: string }) {
  const { links, images } = useMemo(() => attachmentsOf(props.content), [props.content])
  if (links.length === 0 && images.length === 0) return null
  return (
    <div className="flex flex-wrap items-center gap-2">
      {links.map(({ url, name, host }) => (
        <a
          key={url}
          href={url}
          target="_blank"
          rel="noopener noreferrer"
          className="inline-flex max-w-full items-center gap-1.5 rounded-md border border-line px-2.5 py-1 text-sm hover:bg-hover"
        >
          <span className="truncate">{name}</span>
          <span className="truncate text-xs text-muted">{host}</span>
          <ExternalLink className="size-3.5 shrink-0" aria-hidden />
        </a>
      ))}
      {images.map((image, index) => (
        // The order is the tool's, and the same image may be there twice.
        // oxlint-disable-next-line react/no-array-index-key
        <img key={index} src={image} alt={`From ${props.title}`} className="max-h-96 max-w-full rounded-md" />
      ))}
    </div>
  )
}
