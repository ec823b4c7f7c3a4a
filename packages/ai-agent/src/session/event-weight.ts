/** About how much memory a loaded event takes. */
import type { SessionEvent } from '@sandlot/shared/events'

/** Bytes of an object or a list beside what is in it, and of one of its fields. */
const OBJECT_BYTES = 56
const FIELD_BYTES = 16

export function weightOf(event: SessionEvent): number {
  return weigh(event)
}

function weigh(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  let bytes = OBJECT_BYTES
  for (const field of Object.values(value) as unknown[]) bytes += FIELD_BYTES + weigh(field)
  return bytes
}
