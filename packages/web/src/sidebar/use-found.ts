import type { SessionSummary } from '@sandlot/shared/frames'
import { messageOf } from '@sandlot/shared/errors'
import { useEffect, useState } from 'react'
import { findSessions } from '../net/http.ts'

/** A person who types is not asked about every letter, in milliseconds. */
const PAUSE_MS = 150

export type Found =
  | { state: 'not asked' }
  | { state: 'looking' }
  | { state: 'found'; sessions: readonly SessionSummary[] }
  | { state: 'failed'; problem: string }

/** Chats by a part of their names. What was found stays in sight while the next is looked for. */
export function useFound(title: string): Found {
  const [found, setFound] = useState<Found>({ state: 'not asked' })
  const wanted = title.trim()
  useEffect(() => {
    if (wanted === '') return setFound({ state: 'not asked' })
    setFound((before) => (before.state === 'found' ? before : { state: 'looking' }))
    let left = false
    const timer = setTimeout(() => {
      findSessions(wanted).then(
        (sessions) => !left && setFound({ state: 'found', sessions }),
        (error: unknown) => !left && setFound({ state: 'failed', problem: messageOf(error) }),
      )
    }, PAUSE_MS)
    return () => {
      left = true
      clearTimeout(timer)
    }
  }, [wanted])
  return wanted === '' ? { state: 'not asked' } : found
}
