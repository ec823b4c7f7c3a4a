import { ExternalLink } from 'lucide-react'
import { useMemo } from 'react'
import type { ToolCallContent } from '@sandlot/shared/call'
import { attachmentsOf } from './call-attachments.ts'

/** Links of a call, such as where to sign in. */
export function ToolAttachments(props: { content: readonly ToolCallContent[] }) {
  const { links } = useMemo(() => attachmentsOf(props.content), [props.content])
  if (links.length === 0) return null
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
    </div>
  )
}
