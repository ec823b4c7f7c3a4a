import type { QueuedEntry } from '@sandlot/shared/transcript-entries'
import { X } from 'lucide-react'
import { imageSrc } from '../net/images.ts'
import { IconButton } from '../ui/button.tsx'

/** Sent while a prompt ran, and not read yet. `asked`: ids of those that were asked back. `running`: a prompt that will read them. */
export function Queued(props: {
  messages: readonly QueuedEntry[]
  asked: readonly string[]
  running: boolean
  onTakeBack: (messageId: string) => void
}) {
  if (props.messages.length === 0) return null
  return (
    <ul
      aria-label="Waiting to be read"
      data-testid="queued"
      className="border-b border-line py-1.5 pr-2 pl-4 max-md:py-0.5"
    >
      {props.messages.map((message) => (
        <li key={message.messageId} className="flex items-center gap-2 text-sm text-muted">
          <span className="shrink-0 text-xs leading-5 text-faint">
            {props.asked.includes(message.messageId)
              ? 'Asked back'
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
                  alt={`Image ${index + 1} of the waiting message`}
                  className="size-5 rounded-sm object-cover"
                />
              ))}
            </span>
          )}
          <span dir="auto" className="min-w-0 flex-1 truncate" title={message.text}>
            {message.text}
          </span>
          <IconButton
            label={`Take back: ${beginningOf(message)}`}
            className="size-6 max-md:size-9 pointer-coarse:size-11"
            onClick={() => props.onTakeBack(message.messageId)}
          >
            <X aria-hidden />
          </IconButton>
        </li>
      ))}
    </ul>
  )
}

/** Tells the buttons apart for whoever does not see what is beside them. */
function beginningOf({ text, images }: QueuedEntry): string {
  const words = text.trim().replaceAll(/\s+/g, ' ')
  if (words === '') return images.length === 1 ? 'an image' : `${images.length} images`
  // `u`: no character is cut in two.
  const [beginning] = /^.{60}(?=.)/u.exec(words) ?? []
  return beginning === undefined ? words : `${beginning}…`
}
