/** The open chat's owner and members, and its reader's permissions. */
import type { Me } from '@sandlot/shared/account/api'
import type { SessionSummary } from '@sandlot/shared/chat/frames'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { Author, ShareAccess } from '@sandlot/shared/chat/shares'
import { createContext, useContext, useMemo } from 'react'
import { useResource } from './use-resource.ts'
import { call } from '../net/call.ts'
import { useChat, useChatState, useSettledView } from './chat-context.ts'

export interface Reading {
  /** The owner; null: the reader. */
  owner: Author | null
  access: 'own' | ShareAccess
  mayApprove: boolean
  /** Others than the owner who may, for a reader who may not. */
  approvers: readonly Author[]
  /** The number of those whom `approvers` omits. */
  moreApprovers: number
  /** The highest mode of what the reader sends; null: their own, which they choose. */
  modeCeiling: Mode | null
  /** Others see it or have written in it, so it is said who did what. */
  together: boolean
  /** Everybody who is known to be in it, with the reader. */
  people: readonly Author[]
  /** It is read from a link to what it was. */
  snapshot?: true
}

/** A chat that only its owner sees. */
const ALONE: Reading = {
  owner: null,
  access: 'own',
  mayApprove: true,
  approvers: [],
  moreApprovers: 0,
  modeCeiling: null,
  together: false,
  people: [],
}

const Context = createContext<Reading>(ALONE)
export const ReadingProvider = Context.Provider

export function useReading(): Reading {
  return useContext(Context)
}

/** For what is outside of the chat's page. */
export function useReadingOf(sessionId: string | null): Reading {
  const { me } = useChat()
  const summary = useChatState((state) => state.sessions?.find((known) => known.sessionId === sessionId))
  const { authors, people } = useSettledView(sessionId).transcript
  return useMemo(() => readingOf(me, summary, authors, people), [me, summary, authors, people])
}

function readingOf(
  me: Me,
  summary: SessionSummary | undefined,
  authors: readonly Author[],
  present: readonly Author[],
): Reading {
  const owner = summary?.owner ?? null
  const others = [...authors, ...present].filter(({ id }) => id !== me.id)
  if (owner === null && summary?.shared !== true && others.length === 0) return ALONE
  return {
    owner,
    access: owner === null ? 'own' : (summary?.access ?? 'watch'),
    mayApprove: owner === null || summary?.mayApprove === true,
    approvers: summary?.approvers ?? [],
    moreApprovers: summary?.moreApprovers ?? 0,
    modeCeiling: summary?.modeCeiling ?? null,
    together: true,
    people: unique([{ id: me.id, name: me.name }, ...(owner === null ? [] : [owner]), ...others]),
  }
}

function unique(people: readonly Author[]): Author[] {
  return [...new Map(people.map((person) => [person.id, { id: person.id, name: person.name }])).values()]
}

/** The author, where that is not the reader. `author` absent: the owner. */
export function useOther(author: Author | undefined): Author | null {
  const { me } = useChat()
  return otherOf(useReading(), me, author)
}

function otherOf({ owner, together }: Reading, me: Me, author: Author | undefined): Author | null {
  const who = author ?? owner
  return !together || who === null || who.id === me.id ? null : who
}

/**
 * Other people known to see the chat. Its owner also has those who have not been there yet, once a
 * comment is begun.
 */
export function useMentionable(
  sessionId: string | null,
  { access, people }: Reading,
  commenting: boolean,
): readonly Author[] {
  const { me } = useChat()
  const asks = commenting && access === 'own'
  const { data: named } = useResource(asks ? sessionId : null, async (signal) => {
    const { shares } = await call('listShares', { params: { id: sessionId ?? '' }, signal })
    return shares.flatMap(({ kind, targetId: id, name }) =>
      kind === 'person' && name !== undefined ? [{ id, name }] : [],
    )
  })
  return useMemo(
    () => unique([...people, ...(named ?? [])]).filter(({ id }) => id !== me.id),
    [people, named, me.id],
  )
}
