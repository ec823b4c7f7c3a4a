/** Changed lines of people's session lists, for whoever shows them. */
import type { SessionSummary } from '@sandlot/shared/frames'
import { LatestByKey } from './latest-by-key.ts'

/** One changed line of somebody's session list. */
export interface SessionChange {
  userId: string
  summary: SessionSummary
}

export class SessionChanges {
  readonly #listeners = new Set<LatestByKey<string, SessionChange>>()

  tell(change: SessionChange): void {
    for (const listener of this.#listeners) listener.set(change.summary.sessionId, change)
  }

  /** Everybody's; of one session only the latest. Ends when the signal aborts. */
  listen(signal: AbortSignal): AsyncIterable<SessionChange> {
    const listener = new LatestByKey<string, SessionChange>()
    this.#listeners.add(listener)
    const leave = (): void => {
      this.#listeners.delete(listener)
      listener.end()
    }
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
    return listener
  }

  /** Nobody hears any more. */
  end(): void {
    for (const listener of this.#listeners) listener.end()
    this.#listeners.clear()
  }
}
