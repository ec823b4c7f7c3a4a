/**
 * The only file here that imports pino: JSON lines on stderr (stdout is the protocol on stdio),
 * without secrets.
 */
import { makeScrubber } from '@sandlot/shared/base/scrub'
import { pino } from 'pino'
import type { Logger } from 'pino'

export type { Logger } from 'pino'

/** The logger, as most parts need it. */
export interface Log {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
}

/** Values added while the process runs: each line is searched for all of them. */
const MAX_VALUES = 2_000
/** Values of one owner, counted twice when their JSON form differs. */
const MAX_OF_OWNER = 400

/** Redacts secrets in text: known ones, also those added later, and what looks like one. */
export interface Redactor {
  /**
   * Adds a value. Values with an owner (a session) are limited: they evict those of other owners,
   * and never the ones without an owner.
   */
  redact(value: string, owner?: string): void
  scrub(text: string): string
}

export function makeRedactor(secrets: readonly string[]): Redactor {
  const shared = new Set<string>()
  /** By owner, the most recent one last. */
  const owned = new Map<string, Set<string>>()
  let scrub: ((text: string) => string) | undefined
  return {
    redact(value, owner) {
      const values = owner === undefined ? shared : (owned.get(owner) ?? new Set())
      if (owner !== undefined) {
        owned.delete(owner)
        owned.set(owner, values)
      }
      if (values.has(value)) return
      const most = owner === undefined ? MAX_VALUES : MAX_OF_OWNER
      if (values.size >= most) for (const oldest of [...values].slice(0, most / 2)) values.delete(oldest)
      // Also as it stands inside a JSON string, where quotes and line ends look different.
      values.add(value).add(JSON.stringify(value).slice(1, -1))
      dropOldest(owned)
      // Built on demand: many values may be added at once.
      scrub = undefined
    },
    scrub(text) {
      scrub ??= makeScrubber([...secrets, ...shared, ...[...owned.values()].flatMap((values) => [...values])])
      return scrub(text)
    },
  }
}

function dropOldest(owned: Map<string, Set<string>>): void {
  let size = 0
  for (const values of owned.values()) size += values.size
  for (const [owner, values] of owned) {
    if (size <= MAX_VALUES) return
    owned.delete(owner)
    size -= values.size
  }
}

/** `write` gets one line at a time, scrubbed. */
export function makeLog(
  level: string,
  redactor: Redactor,
  write: (line: string) => void = (line) => void process.stderr.write(line),
): Logger {
  return pino(
    { level, base: { part: 'ai-agent' }, timestamp: pino.stdTimeFunctions.isoTime },
    { write: (line: string) => write(redactor.scrub(line)) },
  )
}
