import type { QueuedEntry } from '@sandlot/shared/transcript/entries'
import type { Mode } from '@sandlot/shared/chat/mode'
import { CircleAlert, X } from 'lucide-react'
import { useEffect } from 'react'
import { imageSrc } from '../../net/images.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import type { PendingMessage } from '../../state/outbox.ts'
import { PersonMark } from '../../ui/person-mark.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { useChat } from '../../state/chat-context.ts'
import { useOther, useReading } from '../../state/reading.ts'

/**
 * Sent while a prompt ran, and not read yet. `asked`: ids of those that were asked back. `running`:
 * a prompt that will read them.
 */
export function Queued(props: {
  messages: readonly QueuedEntry[]
  asked: readonly string[]
  running: boolean
  onTakeBack: (messageId: string) => void
}) {
  if (props.messages.length === 0) return null
  return (
    <ul
      aria-label="Queued"
      data-testid="queued"
      className="border-b border-line py-1.5 pr-2 pl-4 max-md:py-0.5"
    >
      {props.messages.map((message) => (
        <li key={message.messageId} className="flex items-center gap-2 text-sm text-muted">
          <WrittenBy author={message.author} />
          <span className="shrink-0 text-xs leading-5 text-faint">
            {props.asked.includes(message.messageId)
              ? 'Withdrawn'
              : props.running
                ? 'Next'
                : 'Will be sent with your next message'}
          </span>
          {message.images.length > 0 && (
            <span className="flex shrink-0 gap-1">
              {message.images.map((image, index) => (
                <img
                  // The order is the person's, and the same image may be there twice.
                  // oxlint-disable-next-line react/no-array-index-key
                  key={index}
                  src={imageSrc(image)}
                  alt={`Image ${index + 1} of the queued message`}
                  className="size-5 rounded-sm object-cover"
                />
              ))}
            </span>
          )}
          <span dir="auto" className="min-w-0 flex-1 truncate" title={message.text}>
            {message.text}
          </span>
          <TakeBack message={message} onTakeBack={props.onTakeBack} />
        </li>
      ))}
    </ul>
  )
}

/** Nothing of one's own message. */
function WrittenBy({ author }: Pick<QueuedEntry, 'author'>) {
  const other = useOther(author)
  if (other === null) return null
  return (
    <span className="flex max-w-[30%] shrink-0 items-center gap-1.5 text-xs">
      <PersonMark {...other} className="size-4.5 text-[0.5rem]" />
      <span className="truncate">
        <Revealed text={other.name} />
      </span>
    </span>
  )
}

/** The owner takes back any, others what is theirs. */
function TakeBack(props: { message: QueuedEntry; onTakeBack: (messageId: string) => void }) {
  const { message } = props
  const other = useOther(message.author)
  const { access } = useReading()
  if (access !== 'own' && other !== null) return null
  return (
    <IconButton
      label={`Withdraw: ${beginningOf(message)}`}
      className="size-6 max-md:size-9 pointer-coarse:size-11"
      onClick={() => props.onTakeBack(message.messageId)}
    >
      <X aria-hidden />
    </IconButton>
  )
}

/** Distinguishes the buttons in a screen reader. */
function beginningOf({ text, images }: QueuedEntry): string {
  const words = text.trim().replaceAll(/\s+/g, ' ')
  if (words === '') return images.length === 1 ? 'an image' : `${images.length} images`
  // `u`: no character is cut in two.
  const [beginning] = /^.{60}(?=.)/u.exec(words) ?? []
  return beginning === undefined ? words : `${beginning}…`
}

/** First messages that the service refused, each with why and what can be done about it. */
export function RefusedMessages(props: { messages: readonly PendingMessage[]; mode: Mode }) {
  const { chat, renewMe } = useChat()
  const forbidden = props.messages.some(({ problem }) => problem?.code === 'forbidden')
  // The available choices have changed since the page was opened.
  useEffect(() => {
    if (forbidden) void renewMe()
  }, [forbidden, renewMe])
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
            <Button
              size="sm"
              className="max-md:h-11"
              onClick={() => chat.sendAgain(message.requestId, props.mode)}
            >
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
