/** Tell who looks elsewhere that a chat waits for them or is done, by a notification of the browser. */
import { useEffect, useEffectEvent } from 'react'
import { notify } from '../lib/notifications.ts'
import type { Chat } from '../state/chat.ts'
import { type News, newsBetween } from '../state/news.ts'

const WORDS: Record<News['what'], string> = { waiting: 'Sandlot needs you', done: 'Sandlot is done' }

/** `onOpen`: the person wants to see that chat. */
export function useNews(chat: Chat, onOpen: (sessionId: string) => void): void {
  const open = useEffectEvent(onOpen)
  useEffect(
    () =>
      chat.store.subscribe((state, before) => {
        if (document.hasFocus()) return
        for (const { sessionId, title, what } of newsBetween(before.sessions, state.sessions))
          notify(WORDS[what], { body: title, tag: sessionId, onClick: () => open(sessionId) })
      }),
    [chat],
  )
}
