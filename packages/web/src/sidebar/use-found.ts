import type { SessionSummary } from '@sandlot/shared/frames'
import { messageOf } from '@sandlot/shared/errors'
import { useEffect, useState } from 'react'
import { findSessions } from '../net/http.ts'

/** A person who types is not asked about every letter, in milliseconds. */
const PAUSE_MS = 150

type Found =
  | { state: 'not asked' }
  | { state: 'looking' }
  /** `title`: what was looked for. `next`: where the page behind these begins, if there is one. */
  | { state: 'found'; title: string; sessions: readonly SessionSummary[]; next: number | null }
  | { state: 'failed'; problem: string }

const NOT_ASKED: Found = { state: 'not asked' }

interface Search {
  found: Found
  /** Look further back. Resolves with the problem, if there was one; what was found stays. */
  more: () => Promise<string | null>
  /** A chat was deleted. */
  forget: (sessionId: string) => void
}

/** Chats by a part of their names. What was found stays in sight while the next is looked for. */
export function useFound(title: string): Search {
  const [found, setFound] = useState<Found>(NOT_ASKED)
  const wanted = title.trim()
  useEffect(() => {
    if (wanted === '') return setFound(NOT_ASKED)
    setFound((before) => (before.state === 'found' ? before : { state: 'looking' }))
    let left = false
    const timer = setTimeout(() => {
      findSessions(wanted).then(
        ({ sessions, next }) => !left && setFound({ state: 'found', title: wanted, sessions, next }),
        (error: unknown) => !left && setFound({ state: 'failed', problem: messageOf(error) }),
      )
    }, PAUSE_MS)
    return () => {
      left = true
      clearTimeout(timer)
    }
  }, [wanted])
  const more = async (): Promise<string | null> => {
    if (found.state !== 'found' || found.next === null) return null
    try {
      const { sessions, next } = await findSessions(found.title, found.next)
      // Unless something else was found meanwhile.
      setFound((now) =>
        now.state === 'found' && now.title === found.title && now.next === found.next
          ? { ...now, sessions: [...now.sessions, ...sessions], next }
          : now,
      )
      return null
    } catch (error) {
      return messageOf(error)
    }
  }
  const forget = (sessionId: string) =>
    setFound((now) =>
      now.state === 'found'
        ? { ...now, sessions: now.sessions.filter((summary) => summary.sessionId !== sessionId) }
        : now,
    )
  return { found: wanted === '' ? NOT_ASKED : found, more, forget }
}
