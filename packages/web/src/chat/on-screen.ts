/** Whether what a person decides about is in front of them: measured on the page, not guessed from the state. */

/** Of an element that has to be read whole before its call may be allowed by a key. */
export const TO_READ = 'data-to-read'
/** Of the region in which the conversation scrolls. */
export const SCROLLS = 'data-scrolls'

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
export function isWholeOnScreen(callId: string): boolean {
  const card = cardOf(callId)
  const bounds = card === null ? undefined : boundsOf(card)
  if (bounds === undefined) return false
  // Half a pixel is rounding.
  return bounds.toRead.top >= bounds.region.top - 0.5 && bounds.toRead.bottom <= bounds.region.bottom + 0.5
}

/** Scroll so that the card is visible, from its beginning where it is longer than the screen. True: it fits. */
export function bringIntoView(callId: string): boolean {
  const card = cardOf(callId)
  if (card === null) return false
  const height = card.closest(`[${SCROLLS}]`)?.clientHeight ?? 0
  card.scrollIntoView({ block: card.offsetHeight <= height ? 'nearest' : 'start' })
  return (boundsOf(card)?.toRead.height ?? Number.POSITIVE_INFINITY) <= height
}

export function focusCard(callId: string): void {
  bringIntoView(callId)
  cardOf(callId)?.focus({ preventScroll: true })
}
