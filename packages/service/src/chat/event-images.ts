/**
 * Images of events. Readers get addresses instead of bytes: a chat with screenshots opens as fast
 * as one without, and a browser loads only the images that it shows.
 */
import type { ToolCallContent } from '@sandlot/shared/chat/call'
import { type SessionEvent, sandlotEventOf, seqOf } from '@sandlot/shared/chat/events'
import type { MessageImage } from '@sandlot/shared/chat/images'

/** The images of an event, in order. */
export function imagesIn(event: SessionEvent): MessageImage[] {
  const found: MessageImage[] = []
  mapImages(event, (image) => {
    found.push(image)
    return image
  })
  return found
}

/**
 * The same event, or a copy whose images have an address instead of bytes. A live event has no
 * number, so no address. `at`: the address of the session, or of a snapshot of it.
 */
export function withoutImageBytes(at: string, event: SessionEvent): SessionEvent {
  const seq = seqOf(event)
  if (seq === undefined) return event
  return mapImages(event, (image, index) => ({
    ...image,
    data: '',
    uri: `${at}/images/${seq}/${index}`,
  }))
}

type Change = <I extends MessageImage>(image: I, index: number) => I

function mapImages(event: SessionEvent, change: Change): SessionEvent {
  switch (event.sessionUpdate) {
    case 'user_message_chunk':
      return event.content.type === 'image' ? { ...event, content: change(event.content, 0) } : event
    case 'tool_call':
    case 'tool_call_update': {
      const { content } = event
      if (content === undefined || !content.some(isImage)) return event
      let index = 0
      return {
        ...event,
        content: content.map((part) =>
          isImage(part) ? { ...part, content: change(part.content, index++) } : part,
        ),
      }
    }
    case 'session_info_update': {
      const happened = sandlotEventOf(event)
      if (happened?.type !== 'message_queued' || happened.images === undefined) return event
      const { sandlot } = event._meta
      const images = happened.images.map((image, index) => change(image, index))
      return { ...event, _meta: { ...event._meta, sandlot: { ...sandlot, event: { ...happened, images } } } }
    }
    default:
      return event
  }
}

type ImagePart = Extract<ToolCallContent, { type: 'content' }> & {
  content: MessageImage & { type: 'image' }
}

function isImage(part: ToolCallContent): part is ImagePart {
  return part.type === 'content' && part.content.type === 'image'
}
