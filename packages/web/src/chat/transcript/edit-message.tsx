/** A message of one's own, to be said in other words, in its place. */
import type { MessageImage } from '@sandlot/shared/chat/images'
import { MAX_MESSAGE_CHARS } from '@sandlot/shared/chat/frames'
import { type KeyboardEvent, useLayoutEffect, useRef, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { MessageImages } from './message-images.tsx'

/** `onEnd` with what is to be sent, or null. */
export function EditMessage(props: {
  text: string
  images: readonly MessageImage[]
  onEnd: (text: string | null) => void
}) {
  const { images, onEnd } = props
  const [text, setText] = useState(props.text)
  const field = useRef<HTMLTextAreaElement>(null)
  const isEmpty = text.trim() === '' && images.length === 0
  useLayoutEffect(() => {
    const { current } = field
    if (current === null) return
    current.focus()
    current.setSelectionRange(current.value.length, current.value.length)
  }, [])
  const onKeyDown = (event: KeyboardEvent) => {
    // 229: some browsers report the Enter that ends a composition after it has ended.
    if (event.nativeEvent.isComposing || event.keyCode === 229) return
    if (event.key === 'Escape') {
      // Nothing else is left or stopped by it.
      event.stopPropagation()
      onEnd(null)
    } else if (event.key === 'Enter' && !event.shiftKey && !isEmpty) {
      event.preventDefault()
      onEnd(text)
    }
  }
  return (
    <div className="w-full rounded-2xl border border-line-strong bg-raised p-2 shadow-1 focus-within:border-accent-line">
      {images.length > 0 && (
        <MessageImages images={images} what="attached to your message" className="mb-2 justify-end" />
      )}
      <textarea
        ref={field}
        dir="auto"
        data-testid="edit-message"
        aria-label="Edit your message"
        value={text}
        maxLength={MAX_MESSAGE_CHARS}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
        className="block max-h-80 min-h-16 w-full resize-none bg-transparent px-2 py-1 text-base leading-relaxed [field-sizing:content] outline-none"
      />
      <div className="mt-1 flex flex-wrap items-center justify-end gap-2">
        <span className="min-w-0 flex-1 px-2 text-xs text-faint">Earlier versions are kept.</span>
        <Button size="sm" variant="ghost" onClick={() => onEnd(null)}>
          Cancel
        </Button>
        <Button size="sm" variant="primary" disabled={isEmpty} onClick={() => onEnd(text)}>
          Send
        </Button>
      </div>
    </div>
  )
}
