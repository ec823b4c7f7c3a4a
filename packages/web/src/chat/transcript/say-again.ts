import { messageOf } from '@sandlot/shared/base/errors'
import type { MessageImage } from '@sandlot/shared/chat/images'
import { uploadAgain } from '../../net/images.ts'
import type { Chat, SendOptions } from '../../state/chat.ts'

/** A person's message. */
export interface Said {
  readonly text: string
  readonly images?: readonly MessageImage[]
}

/** Sends the message again. A failure is shown below the conversation; does not reject. */
export async function sayAgain(
  chat: Chat,
  sessionId: string,
  { text, images = [] }: Said,
  options: Pick<SendOptions, 'follows' | 'model'> = {},
): Promise<void> {
  try {
    const { sent, left } = await uploadAgain(images)
    if (text === '' && sent.length === 0)
      return chat.warn(sessionId, 'This message’s images can’t be resent from here.')
    chat.send(sessionId, text, { ...options, images: sent })
    if (left > 0) chat.warn(sessionId, 'Sent again without images that can’t be resent from here.')
  } catch (error) {
    chat.warn(sessionId, messageOf(error))
  }
}
