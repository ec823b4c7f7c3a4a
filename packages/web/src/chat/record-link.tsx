import { FileDown } from 'lucide-react'
import { ACTION } from './message-action.ts'

/** Everything about the prompt of this message as one file: for a report of what went wrong. */
export function RecordLink(props: { sessionId: string; promptId: string }) {
  const { sessionId, promptId } = props
  return (
    <a
      href={`/api/sessions/${encodeURIComponent(sessionId)}/prompts/${encodeURIComponent(promptId)}/export`}
      download
      aria-label="Download record"
      title="Download record"
      className={ACTION}
    >
      <FileDown className="size-3.5" aria-hidden />
    </a>
  )
}
