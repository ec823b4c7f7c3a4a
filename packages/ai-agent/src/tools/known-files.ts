/**
 * Workspace files that the session has seen: a fold of its log, so that it is the same after a
 * restart.
 */
import { createHash } from 'node:crypto'
import { type SessionEvent, isOutcome } from '@sandlot/shared/chat/events'
import { z } from 'zod'

/** A `contentHash`. */
export const contentHashSchema = z.string().regex(/^[0-9a-f]{64}$/)

/** The hash of a file's whole content, as tools put it into their outcome's `data.hash`. */
export function contentHash(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/**
 * The content that the session last saw or made at `path` (as shown), as a hash. Undefined: it does
 * not know.
 */
export function knownHash(events: readonly SessionEvent[], path: string): string | undefined {
  for (const event of events.toReversed()) {
    if (!isOutcome(event)) continue
    const data = event.rawOutput?.data
    if (typeof data !== 'object' || data === null) continue
    const { path: seen, hash } = data as { path?: unknown; hash?: unknown }
    if (seen === path && typeof hash === 'string') return hash
  }
  return undefined
}
