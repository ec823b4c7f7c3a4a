import { CircleAlert } from 'lucide-react'
import type { PendingMessage } from '../state/outbox.ts'
import { Button } from '../ui/button.tsx'
import { useChat } from './chat-context.ts'

/** First messages that the service refused, each with why and what can be done about it. */
export function RefusedMessages(props: { messages: readonly PendingMessage[] }) {
  const { chat } = useChat()
  if (props.messages.length === 0) return null
  return (
    <ul aria-label="Not sent" data-testid="refused" className="divide-y divide-line border-b border-line">
      {props.messages.map((message) => (
        <li key={message.requestId} className="flex flex-wrap items-center gap-x-3 gap-y-1.5 py-2 pr-2 pl-4">
          <div className="min-w-0 flex-1 basis-56">
            <p dir="auto" className="truncate text-sm" title={message.text}>
              {message.text === '' ? 'Images' : message.text}
            </p>
            <p role="alert" className="mt-0.5 flex items-start gap-1.5 text-xs text-failed">
              <CircleAlert className="mt-px size-3.5 shrink-0" aria-hidden />
              <span className="min-w-0 [overflow-wrap:anywhere]">{message.problem?.message}</span>
            </p>
          </div>
          <div className="flex gap-1">
            <Button size="sm" className="max-md:h-11" onClick={() => chat.sendAgain(message.requestId)}>
              Send again
            </Button>
            <Button
              size="sm"
              variant="ghost"
              className="max-md:h-11"
              onClick={() => chat.discard(message.requestId)}
            >
              Discard
            </Button>
          </div>
        </li>
      ))}
    </ul>
  )
}
