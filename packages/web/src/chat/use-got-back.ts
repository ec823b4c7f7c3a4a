import type { QueuedEntry } from '@sandlot/shared/transcript-entries'
import { messageOf } from '@sandlot/shared/errors'
import { useEffect, useEffectEvent } from 'react'
import { readAgain } from '../net/images.ts'
import { useChat } from './chat-context.ts'

/**
 * Give what was taken back to the composer, to be changed and sent again: behind what is being written there, after a blank
 * line, so that nothing of either is lost. Of its images those that fit; the composer says so when some do not.
 */
export function useGotBack(
  sessionId: string | null,
  got: readonly QueuedEntry[],
  composer: { text: string; onText: (text: string) => void; onImages: (files: readonly File[]) => void },
): void {
  const { chat } = useChat()
  const takeOver = useEffectEvent(async (session: string) => {
    const messages = chat.takeGot(session)
    if (messages.length === 0) return
    const texts = [composer.text, ...messages.map((message) => message.text)]
    composer.onText(texts.filter((text) => text.trim() !== '').join('\n\n'))
    const files: File[] = []
    for (const { images } of messages) {
      try {
        files.push(...(await readAgain(images)))
      } catch (error) {
        chat.warn(session, messageOf(error))
      }
    }
    // All at once: what is said of those that do not fit stays until the next are added.
    if (files.length > 0) composer.onImages(files)
  })
  useEffect(() => {
    if (sessionId !== null && got.length > 0) void takeOver(sessionId)
  }, [sessionId, got])
}
