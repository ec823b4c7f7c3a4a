import type { SessionEvent } from '@sandlot/shared/chat/events'

/**
 * A fold of a log that only grows: where the same log was read before, only what is new is read, so
 * that who asks at every call of a turn does not read all of it each time. `read` takes one event,
 * with its place in the log, into what `begin` made.
 */
export function growingFold<F>(
  begin: () => F,
  read: (fold: F, event: SessionEvent, place: number, log: readonly SessionEvent[]) => void,
): (log: readonly SessionEvent[]) => F {
  const known = new WeakMap<
    readonly SessionEvent[],
    { fold: F; length: number; last: SessionEvent | undefined }
  >()
  return (log) => {
    const before = known.get(log)
    const now =
      before !== undefined && before.last === log[before.length - 1]
        ? before
        : { fold: begin(), length: 0, last: undefined }
    for (; now.length < log.length; now.length++) {
      const event = log[now.length]
      if (event !== undefined) read(now.fold, event, now.length, log)
      now.last = event
    }
    known.set(log, now)
    return now.fold
  }
}
