/** What is typed and not sent, per session, kept across a reload. */
import { useState } from 'react'
import { browserStorage } from '../lib/storage.ts'

const keyOf = (sessionId: string | null) => `sandlot.draft.${sessionId ?? 'new'}`

function keep(sessionId: string | null, text: string): void {
  if (text === '') browserStorage('local').remove(keyOf(sessionId))
  else browserStorage('local').set(keyOf(sessionId), text)
}

/** The page is made anew for each session, so the draft is read once. */
export function useDraft(sessionId: string | null): [string, (text: string) => void] {
  const [draft, setDraft] = useState(() => browserStorage('local').get(keyOf(sessionId)) ?? '')
  const change = (text: string) => {
    setDraft(text)
    keep(sessionId, text)
  }
  return [draft, change]
}

/** What was typed while a new chat got its session belongs to that session. */
export function moveDraft(from: string | null, to: string | null): void {
  const text = browserStorage('local').get(keyOf(from)) ?? ''
  if (text === '') return
  keep(to, text)
  keep(from, '')
}
