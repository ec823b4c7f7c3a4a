import { orAborted } from '#shared/async/or-aborted'
import type { Authority } from './host.ts'
import { EgressRefused } from './refusal.ts'
import type { UserPolicy } from './user-rules.ts'

interface Open {
  authority: Authority
  end: (why: unknown) => void
  /** Looks in a row at which the rules could not be read. */
  unread: number
}

/** For so many looks rules are waited for; what has not come by then cannot be read. */
const READ_LOOKS = 5

/** At so many a connection is ended: a rule that denies it may be among the unreadable ones. */
const MOST_UNREAD = 5

/**
 * The connections of one user that are open. They are looked at again from time to time: one that
 * would not be let through any more (a rule was revoked, or made, or is over) is ended with that
 * reason, and all when the rules cannot be read for `MOST_UNREAD` looks.
 */
export function createOpenConnections(policy: UserPolicy, everyMs: number) {
  const open = new Set<Open>()
  let timer: NodeJS.Timeout | undefined

  const look = async (): Promise<void> => {
    let decide: (authority: Authority) => unknown
    try {
      decide = await orAborted(policy.decide(), AbortSignal.timeout(READ_LOOKS * everyMs))
    } catch (cause) {
      // New connections are refused at once. A short failure of the rule store does not end open
      // ones.
      for (const one of open) {
        one.unread += 1
        if (one.unread >= MOST_UNREAD) one.end(unreadable(cause))
      }
      return
    }
    for (const one of open) {
      one.unread = 0
      try {
        decide(one.authority)
      } catch (error) {
        one.end(error)
      }
    }
  }
  const schedule = (): void => {
    if (timer !== undefined || open.size === 0) return
    timer = setTimeout(() => {
      void look().finally(() => {
        timer = undefined
        schedule()
      })
    }, everyMs).unref()
  }
  return {
    /**
     * From before it is decided on, so that what is revoked meanwhile is seen. Call what it answers
     * when it is over.
     */
    add(authority: Authority, end: (why: unknown) => void): () => void {
      const one = { authority, end, unread: 0 }
      open.add(one)
      schedule()
      return () => void open.delete(one)
    },
  }
}

function unreadable(cause: unknown): EgressRefused {
  return new EgressRefused('broken', 'the rules of this sandbox cannot be read.', { cause })
}
