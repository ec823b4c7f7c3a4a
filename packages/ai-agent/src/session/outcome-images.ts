/**
 * Images of an outcome that the store has no room for: a sentence stands for them, to the model and
 * on the card.
 */
import { isOutcome, type EventGroup, type SessionEvent } from '@sandlot/shared/chat/events'
import { NO_ROOM_TEXTS } from '@sandlot/storage/sessions/store-room'
import type { NoRoom } from '@sandlot/storage/tables/records'

/** In the stored form: base64. */
export function sizeOf(images: readonly { data: string }[]): number {
  return images.reduce((sum, { data }) => sum + data.length, 0)
}

/**
 * The same group, without images that cannot be stored. `missing`: as `OutputRows.missingRoom`,
 * of the user.
 */
export async function storableGroup(
  group: EventGroup,
  missing: (bytes: number) => Promise<NoRoom | undefined>,
): Promise<EventGroup> {
  const bytes = sizeOf(group.flatMap(imagesOf))
  if (bytes === 0) return group
  const why = await missing(bytes)
  return why === undefined ? group : group.map((event) => withoutImages(event, why))
}

function imagesOf(event: SessionEvent): { data: string }[] {
  if (!isOutcome(event)) return []
  return (event.content ?? []).flatMap((item) =>
    item.type === 'content' && item.content.type === 'image' ? [item.content] : [],
  )
}

function withoutImages(event: SessionEvent, why: NoRoom): SessionEvent {
  const count = imagesOf(event).length
  if (count === 0 || !isOutcome(event)) return event
  const words = `${count === 1 ? 'The image' : `The ${count} images`} cannot be stored: ${NO_ROOM_TEXTS[why]}`
  const others = (event.content ?? []).filter(
    (item) => item.type !== 'content' || item.content.type !== 'image',
  )
  const note = { type: 'content' as const, content: { type: 'text' as const, text: words } }
  const forModel = [event.rawOutput?.forModel ?? '', `[${words}]`].filter((part) => part !== '').join('\n')
  return { ...event, content: [...others, note], rawOutput: { ...event.rawOutput, forModel } }
}
