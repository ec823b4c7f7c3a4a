/**
 * Our events as the SDK's types know them. The only difference is `undefined`: zod infers optional members as "absent or
 * undefined", the SDK's are "absent". In JSON, where both end up, it is the same.
 */
import type { SessionUpdate } from '@agentclientprotocol/sdk'
import type { SessionEvent } from '@sandlot/shared/events'

/** `T` with optional members that are absent rather than undefined, at every depth. */
export type Wire<T> = T extends readonly (infer U)[]
  ? Wire<U>[]
  : T extends object
    ? { [K in keyof T]: Wire<Exclude<T[K], undefined>> }
    : T

export function toWire(event: SessionEvent): SessionUpdate {
  // Assignable without a cast but for `undefined`; the test of this file's types would fail otherwise.
  const wire: Wire<SessionEvent> = event as Wire<SessionEvent>
  return wire
}
