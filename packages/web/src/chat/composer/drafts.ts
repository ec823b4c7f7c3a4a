/** Unsent text, per session, stored across a reload. */
import { useState } from 'react'
import type { UnsentStorage } from '../../lib/storage.ts'
import { useChat } from '../../state/chat-context.ts'

const keyOf = (sessionId: string | null) => `sandlot.draft.${sessionId ?? 'new'}`

export function draftOf(unsent: UnsentStorage, sessionId: string | null): string {
  return unsent(sessionId).get(keyOf(sessionId)) ?? ''
}

function keepDraft(unsent: UnsentStorage, sessionId: string | null, text: string): void {
  if (text === '') unsent(sessionId).remove(keyOf(sessionId))
  else unsent(sessionId).set(keyOf(sessionId), text)
}

/** The page is mounted again for each session, so the draft is read once. */
export function useDraft(sessionId: string | null): [string, (text: string) => void] {
  const { unsent } = useChat()
  const [draft, setDraft] = useState(() => draftOf(unsent, sessionId))
  const change = (text: string) => {
    setDraft(text)
    keepDraft(unsent, sessionId, text)
  }
  return [draft, change]
}

/** Text typed while a new chat got its session belongs to that session. */
export function moveDraft(unsent: UnsentStorage, sessionId: string): void {
  const text = draftOf(unsent, null)
  if (text === '') return
  keepDraft(unsent, sessionId, text)
  keepDraft(unsent, null, '')
}
