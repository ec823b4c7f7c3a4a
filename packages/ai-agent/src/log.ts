/** The only file here that imports pino: JSON lines on stderr (stdout is the protocol on stdio), without secrets. */
import { makeScrubber } from '@sandlot/shared/scrub'
import { pino } from 'pino'
import type { Logger } from 'pino'

export type { Logger } from 'pino'

/** Values that came in while the process ran and are still hidden: each line is compared with all of them. */
const MAX_VALUES = 2_000
/** Of them those of one owner, each counted also as JSON writes it. */
const MAX_OF_OWNER = 400

/** Takes secrets out of text: those it was given, at the start or later, and what looks like one. */
export interface Hiding {
  /**
   * From now on this is hidden too. With an owner (a session) it is one of few: owners take each other's place, and nobody
   * else's.
   */
  hide(value: string, owner?: string): void
  scrub(text: string): string
}

export function makeHiding(secrets: readonly string[]): Hiding {
  const everybodys = new Set<string>()
  /** The one that was heard of last is the last. */
  const owned = new Map<string, Set<string>>()
  let scrub: ((text: string) => string) | undefined
  return {
    hide(value, owner) {
      const values = owner === undefined ? everybodys : (owned.get(owner) ?? new Set())
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
      // Made when it is needed: many may come at once.
      scrub = undefined
    },
    scrub(text) {
      scrub ??= makeScrubber([
        ...secrets,
        ...everybodys,
        ...[...owned.values()].flatMap((values) => [...values]),
      ])
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
  hiding: Hiding,
  write: (line: string) => void = (line) => void process.stderr.write(line),
): Logger {
  return pino(
    { level, base: { part: 'ai-agent' }, timestamp: pino.stdTimeFunctions.isoTime },
    { write: (line: string) => write(hiding.scrub(line)) },
  )
}
