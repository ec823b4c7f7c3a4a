import { orAborted } from '#shared/async/or-aborted'
import type { Authority } from './host.ts'
import { EgressRefused } from './refusal.ts'
import type { UserPolicy } from './user-rules.ts'

interface Open {
  authority: Authority
  end: (why: unknown) => void
  /** Consecutive checks at which the rules could not be read. */
  unread: number
}

/** Checks for which rules may be pending; after that they count as unreadable. */
const READ_CHECKS = 5

/** At so many a connection is closed: a rule that denies it may be among the unreadable ones. */
const MOST_UNREAD = 5

/**
 * Open connections of one user, checked again at intervals. One that the rules no longer allow (one
 * was revoked, added or expired) is closed with that reason, and all of them when the rules are
 * unreadable for `MOST_UNREAD` checks.
 */
export function createOpenConnections(policy: UserPolicy, everyMs: number) {
  const open = new Set<Open>()
  let timer: NodeJS.Timeout | undefined

  const check = async (): Promise<void> => {
    let decide: (authority: Authority) => unknown
    try {
      decide = await orAborted(policy.decide(), AbortSignal.timeout(READ_CHECKS * everyMs))
    } catch (cause) {
      // New connections are refused at once. A short failure of the rule store does not close open
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
      void check().finally(() => {
        timer = undefined
        schedule()
      })
    }, everyMs).unref()
  }
  return {
    /**
     * Call it before the decision, so that a revocation in between is noticed. Call the returned
     * function at the end.
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
