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

const NOT_ASKED: Found = { state: 'not asked' }

/**
 * Chats by a part of their names. What was found stays in sight while the next is looked for. `forget`: a chat was deleted.
 */
export function useFound(title: string): { found: Found; forget: (sessionId: string) => void } {
  const [found, setFound] = useState<Found>(NOT_ASKED)
  const wanted = title.trim()
  useEffect(() => {
    if (wanted === '') return setFound(NOT_ASKED)
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
  const forget = (sessionId: string) =>
    setFound((now) =>
      now.state === 'found'
        ? { ...now, sessions: now.sessions.filter((summary) => summary.sessionId !== sessionId) }
        : now,
    )
  return { found: wanted === '' ? NOT_ASKED : found, forget }
}
