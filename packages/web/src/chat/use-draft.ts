import { useEffect, useState } from 'react'
import { browserStorage } from '../lib/storage.ts'

const keyOf = (sessionId: string | null) => `sandlot.draft.${sessionId ?? 'new'}`

/** What is typed and not sent, per session, kept across a reload. */
export function useDraft(sessionId: string | null): [string, (text: string) => void] {
  const [draft, setDraft] = useState(() => ({
    sessionId,
    text: browserStorage('local').get(keyOf(sessionId)) ?? '',
  }))
  useEffect(() => {
    setDraft({ sessionId, text: browserStorage('local').get(keyOf(sessionId)) ?? '' })
  }, [sessionId])
  const change = (text: string) => {
    setDraft({ sessionId, text })
    if (text === '') browserStorage('local').remove(keyOf(sessionId))
    else browserStorage('local').set(keyOf(sessionId), text)
  }
  return [draft.sessionId === sessionId ? draft.text : '', change]
}
