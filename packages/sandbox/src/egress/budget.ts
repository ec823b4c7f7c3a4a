import { EgressRefused } from './refusal.ts'

export interface EgressBudgets {
  /** Connections of one user open at once. Default 256. */
  connections: number
  /** New connections of one user in a minute. Default 3,000. */
  connectionsPerMinute: number
  /** Bytes of one user in both directions within `windowMs`. Default 20 GiB. */
  bytes: number
  /** Default one hour. */
  windowMs: number
  /** Lifetime of one connection. Default one hour. */
  connectionMs: number
  /** Maximum silence in both directions. Default five minutes. */
  idleMs: number
  /** Time for the head of a request, or the first bytes of TLS. Default 15 s. */
  requestMs: number
  /** Resolving and dialling together. Default 15 s. */
  connectMs: number
}

export const DEFAULT_BUDGETS: EgressBudgets = {
  connections: 256,
  connectionsPerMinute: 3_000,
  bytes: 20 * 1024 ** 3,
  windowMs: 3_600_000,
  connectionMs: 3_600_000,
  idleMs: 300_000,
  requestMs: 15_000,
  connectMs: 15_000,
}

/**
 * Counts within a span of time and restarts when it is over. Times in milliseconds, on any
 * monotonic clock.
 */
function counter(limit: number, spanMs: number, now: () => number) {
  let begun = now()
  let used = 0
  const roll = (): void => {
    if (now() - begun < spanMs) return
    begun = now()
    used = 0
  }
  return {
    /** False when this exceeds the rest; it counts nevertheless. */
    take(amount: number): boolean {
      roll()
      used += amount
      return used <= limit
    },
    full(): boolean {
      roll()
      return used >= limit
    },
    leftMs: (): number => Math.max(0, begun + spanMs - now()),
  }
}

/** Budget of one user. */
export interface UserBudget {
  readonly open: number
  /**
   * A slot for one more connection; release it once. Throws `EgressRefused` when a budget is used
   * up.
   */
  enter(): () => void
  /** Counts transferred bytes. Throws `byte_budget` when they exceed the rest. */
  count(bytes: number): void
  /** Milliseconds until a retry makes sense. */
  retryAfterMs(reason: string): number
}

export function createBudget(budgets: EgressBudgets, now = (): number => performance.now()): UserBudget {
  const opened = counter(budgets.connectionsPerMinute, 60_000, now)
  const bytes = counter(budgets.bytes, budgets.windowMs, now)
  let open = 0
  return {
    get open() {
      return open
    },
    enter() {
      if (open >= budgets.connections)
        throw new EgressRefused(
          'too_many_connections',
          `more than ${budgets.connections} connections at once are not allowed; close some and try again.`,
        )
      if (!opened.take(1))
        throw new EgressRefused(
          'too_many_connections',
          `more than ${budgets.connectionsPerMinute} new connections a minute are not allowed; try again later.`,
        )
      if (bytes.full()) throw outOfBytes(budgets)
      open += 1
      let left = false
      return () => {
        if (!left) open -= 1
        left = true
      }
    },
    count(amount) {
      if (!bytes.take(amount)) throw outOfBytes(budgets)
    },
    retryAfterMs(reason) {
      if (reason === 'byte_budget') return bytes.leftMs()
      return reason === 'too_many_connections' && opened.full() ? opened.leftMs() : 1_000
    },
  }
}

function outOfBytes({ bytes, windowMs }: EgressBudgets): EgressRefused {
  const minutes = Math.ceil(windowMs / 60_000)
  return new EgressRefused(
    'byte_budget',
    `the ${bytes} bytes that may pass in ${minutes} minutes are used up; try again later.`,
  )
}
