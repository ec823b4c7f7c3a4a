/**
 * Answers by key, and where a person is after one. A call is allowed by a key only while its whole
 * command is on the screen: else its card is brought there and marked, and the next press acts.
 */
import type { CallEntry } from '@sandlot/shared/transcript/entries'
import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import { formatCount } from '../../lib/format.ts'
import { revealedText } from '../../lib/invisible.ts'
import { answerCalls, asksApproval } from './approval-bar.tsx'
import { useChat } from '../../state/chat-context.ts'

type Kind = 'allow_once' | 'reject_once'

interface Approvals {
  /** The call that a key brought into view and has not answered yet. */
  marked: string | null
  /** For the status region. */
  said: string
  /** False: nothing waits for approval. */
  answerOne: (kind: Kind) => boolean
  answerAll: (kind: Kind) => boolean
}

/** `onNone`: the last call was answered from its card, and focus has no next one to go to. */
export function useApprovals(
  sessionId: string | null,
  waiting: readonly CallEntry[],
  onNone: () => void,
): Approvals {
  const { chat } = useChat()
  const [marked, setMarked] = useState<string | null>(null)
  const [said, setSaid] = useState('')
  const focused = useFocusedCard()
  useAnswered(waiting, (answered) => {
    const [next] = waiting
    if (marked !== null && answered.includes(marked)) setMarked(null)
    setSaid(next === undefined ? 'Nothing else needs you.' : `Next: ${titleOf(next)}`)
    const active = document.activeElement
    const lost = active === null || active === document.body || active.matches(':disabled')
    if (!lost || focused.current === null || !answered.includes(focused.current)) return
    if (next === undefined) onNone()
    else focusCard(next.id)
  })

  const show = (call: CallEntry, kind: Kind, before = '') => {
    const fits = bringIntoView(call.id)
    setMarked(call.id)
    const act = kind === 'allow_once' ? 'allow' : 'deny'
    const how = fits
      ? `Press again to ${act} it`
      : 'It’s longer than the screen. Read it to the end, then use its buttons'
    setSaid(`${before}Brought into view: ${titleOf(call)}. ${how}.`)
  }
  return {
    marked,
    said,
    answerOne(kind) {
      const calls = waiting.filter(asksApproval)
      const call = calls.find(({ id }) => id === marked) ?? calls[0]
      if (sessionId === null || call === undefined) return false
      if (isWholeOnScreen(call.id)) answerCalls(chat, sessionId, [call], kind)
      else show(call, kind)
      return true
    },
    answerAll(kind) {
      const calls = waiting.filter(asksApproval)
      if (sessionId === null || calls.length === 0) return false
      // A denied call does nothing, seen or not.
      const seen = kind === 'reject_once' ? calls : calls.filter(({ id }) => isWholeOnScreen(id))
      answerCalls(chat, sessionId, seen, kind)
      const unseen = calls.find((call) => !seen.includes(call))
      if (unseen !== undefined)
        show(unseen, kind, seen.length === 0 ? '' : `Allowed ${formatCount(seen.length, 'call')}. `)
      return true
    },
  }
}

function titleOf({ title }: CallEntry): string {
  return revealedText(title)
}

/** The call in whose card the focus is, or was until its button went away. */
function useFocusedCard(): { readonly current: string | null } {
  const focused = useRef<string | null>(null)
  useEffect(() => {
    const onFocusIn = ({ target }: FocusEvent) => {
      const card = target instanceof Element ? target.closest('[data-call-id]') : null
      focused.current = card?.getAttribute('data-call-id') ?? null
    }
    document.addEventListener('focusin', onFocusIn)
    return () => document.removeEventListener('focusin', onFocusIn)
  }, [])
  return focused
}

/** Calls `onAnswered` with the ids of calls that waited and do not any more. */
function useAnswered(waiting: readonly CallEntry[], onAnswered: (ids: string[]) => void): void {
  const before = useRef<readonly string[]>([])
  const latest = useRef(onAnswered)
  useLayoutEffect(() => {
    latest.current = onAnswered
  })
  useLayoutEffect(() => {
    const now = waiting.map(({ id }) => id)
    const answered = before.current.filter((id) => !now.includes(id))
    before.current = now
    if (answered.length > 0) latest.current(answered)
  }, [waiting])
}

/**
 * True if the content of a decision is in view: measured on the page, not guessed from the state.
 */

/** Marks an element that has to be read whole before its call may be allowed by a key. */
const TO_READ = 'data-to-read'
/** Marks the region in which the conversation scrolls. */
const SCROLLS = 'data-scrolls'

function cardOf(callId: string): HTMLElement | null {
  return document.querySelector(`[data-testid=tool-card][data-call-id="${CSS.escape(callId)}"]`)
}

/** A call without arguments has nothing to read but its card. */
function boundsOf(card: HTMLElement): { toRead: DOMRect; region: DOMRect } | undefined {
  const element = card.querySelector(`[${TO_READ}]`)
  const toRead = (element?.childElementCount === 0 ? card : element)?.getBoundingClientRect()
  const region = card.closest(`[${SCROLLS}]`)?.getBoundingClientRect()
  return toRead === undefined || region === undefined || toRead.height === 0 ? undefined : { toRead, region }
}

/** All of what the call would do is visible, its first line and its last. */
function isWholeOnScreen(callId: string): boolean {
  const card = cardOf(callId)
  const bounds = card === null ? undefined : boundsOf(card)
  if (bounds === undefined) return false
  // Half a pixel is rounding.
  return bounds.toRead.top >= bounds.region.top - 0.5 && bounds.toRead.bottom <= bounds.region.bottom + 0.5
}

/**
 * Scroll so that the card is visible, from its beginning where it is longer than the screen. True:
 * it fits.
 */
function bringIntoView(callId: string): boolean {
  const card = cardOf(callId)
  if (card === null) return false
  const height = card.closest(`[${SCROLLS}]`)?.clientHeight ?? 0
  card.scrollIntoView({ block: card.offsetHeight <= height ? 'nearest' : 'start' })
  return (boundsOf(card)?.toRead.height ?? Number.POSITIVE_INFINITY) <= height
}

function focusCard(callId: string): void {
  bringIntoView(callId)
  cardOf(callId)?.focus({ preventScroll: true })
}
