/**
 * State of one kind of alert: whether it is raised, and when to send that. It is raised and cleared
 * only after the facts held without interruption for a while, so that a flapping condition causes
 * no mail each time; while raised it is sent again once a day. Pure, and plain JSON.
 */
import { z } from 'zod'

const turningSince = z.number().optional()
export const alertState = z.discriminatedUnion('is', [
  z.object({
    is: z.literal('well'),
    /** Epoch milliseconds since which the facts say otherwise. */
    turningSince,
  }),
  z.object({
    is: z.literal('ill'),
    since: z.number(),
    message: z.string(),
    /** When it was said last. */
    toldAt: z.number(),
    turningSince,
  }),
])
type AlertState = z.infer<typeof alertState>

/** The current observation. Undefined in its place: nothing is known now. */
export interface AlertFact {
  ok: boolean
  message: string
}

export interface AlertTimes {
  /** The time that something has to be wrong before it is reported. */
  raiseMs: number
  /** The time that it has to be right again. */
  clearMs: number
  remindMs: number
}

/** The message to send now: it began, it continues, it is over. */
export type AlertSay = 'raised' | 'reminder' | 'cleared'

export function nextAlertState(
  before: AlertState,
  fact: AlertFact | undefined,
  at: number,
  times: AlertTimes,
): { state: AlertState; say?: AlertSay } {
  const { turningSince: turning, ...settled } = before
  if (fact === undefined) return { state: settled }
  const says = fact.ok ? 'well' : 'ill'
  if (says !== settled.is) {
    // A clock that was set back restarts the wait.
    const since = Math.min(turning ?? at, at)
    if (at - since < (fact.ok ? times.clearMs : times.raiseMs))
      return { state: { ...settled, turningSince: since } }
    return fact.ok
      ? { state: { is: 'well' }, say: 'cleared' }
      : { state: { is: 'ill', since, message: fact.message, toldAt: at }, say: 'raised' }
  }
  if (settled.is === 'well') return { state: settled }
  const toldAt = Math.min(settled.toldAt, at)
  const due = at - toldAt >= times.remindMs
  const state = { ...settled, message: fact.message, toldAt: due ? at : toldAt }
  return due ? { state, say: 'reminder' } : { state }
}
