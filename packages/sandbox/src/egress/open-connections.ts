import type { Authority } from './host.ts'
import type { UserPolicy } from './user-rules.ts'

/**
 * The connections of one user that are open. They are looked at again from time to time: one that would not be let through
 * any more (a rule was revoked, or made, or is over) is ended with that reason.
 */
export function createOpenConnections(policy: UserPolicy, everyMs: number) {
  const open = new Set<{ authority: Authority; end: (why: unknown) => void }>()
  let timer: NodeJS.Timeout | undefined

  const look = async (): Promise<void> => {
    let decide: (authority: Authority) => unknown
    try {
      decide = await policy.decide()
    } catch {
      // Whoever keeps the rules does not answer: new connections are refused, what was let through stays until it does.
      return
    }
    for (const { authority, end } of open) {
      try {
        decide(authority)
      } catch (error) {
        end(error)
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
    /** From before it is decided on, so that what is revoked meanwhile is seen. Call what it answers when it is over. */
    add(authority: Authority, end: (why: unknown) => void): () => void {
      const one = { authority, end }
      open.add(one)
      schedule()
      return () => void open.delete(one)
    },
  }
}
