import { FileDown } from 'lucide-react'

/** Everything about the prompt of this message as one file: for a report of what went wrong. */
export function RecordLink(props: { sessionId: string; promptId: string }) {
  const { sessionId, promptId } = props
  return (
    <a
      href={`/api/sessions/${encodeURIComponent(sessionId)}/prompts/${encodeURIComponent(promptId)}/export`}
      download
      aria-label="Download record"
      title="Download record"
      className="inline-flex h-7 items-center rounded-md px-1.5 text-faint opacity-0 transition-opacity group-focus-within/message:opacity-100 group-hover/message:opacity-100 hover:bg-hover hover:text-ink pointer-coarse:opacity-100"
    >
      <FileDown className="size-3.5" aria-hidden />
    </a>
  )
}
