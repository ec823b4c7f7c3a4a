import type { QueuedEntry } from '@sandlot/shared/transcript-entries'
import { messageOf } from '@sandlot/shared/errors'
import { useEffect, useEffectEvent } from 'react'
import { readAgain } from '../net/images.ts'
import { useChat } from './chat-context.ts'

/**
 * Give what was taken back to the composer, to be changed and sent again. Only where nothing is being written: a message
 * that is being written is worth more than one that was given up.
 */
export function useGotBack(
  sessionId: string | null,
  got: readonly QueuedEntry[],
  composer: { isEmpty: boolean; onText: (text: string) => void; onImages: (files: readonly File[]) => void },
): void {
  const { chat } = useChat()
  const takeOver = useEffectEvent(async (session: string, message: QueuedEntry) => {
    chat.tookOver(session)
    if (!composer.isEmpty) return
    composer.onText(message.text)
    if (message.images.length === 0) return
    try {
      composer.onImages(await readAgain(message.images))
    } catch (error) {
      chat.warn(session, messageOf(error))
    }
  })
  useEffect(() => {
    const [first] = got
    if (sessionId !== null && first !== undefined) void takeOver(sessionId, first)
  }, [sessionId, got])
}
