/** The only file here that imports pino: JSON lines on stderr (stdout is the protocol on stdio), without secrets. */
import { makeScrubber } from '@sandlot/shared/scrub'
import { pino } from 'pino'
import type { Logger } from 'pino'

export type { Logger } from 'pino'

/** Values that came in while the process ran and are still hidden: each line is compared with all of them. */
const MAX_VALUES = 2_000

/** Takes secrets out of text: those it was given, at the start or later, and what looks like one. */
export interface Hiding {
  /** From now on this is hidden too. */
  hide(value: string): void
  scrub(text: string): string
}

export function makeHiding(secrets: readonly string[]): Hiding {
  const later = new Set<string>()
  let scrub = makeScrubber(secrets)
  return {
    hide(value) {
      // Also as it stands inside a JSON string, where quotes and line ends look different.
      const asJson = JSON.stringify(value).slice(1, -1)
      if (later.has(value)) return
      if (later.size >= MAX_VALUES)
        for (const oldest of [...later].slice(0, MAX_VALUES / 2)) later.delete(oldest)
      later.add(value).add(asJson)
      scrub = makeScrubber([...secrets, ...later])
    },
    scrub: (text) => scrub(text),
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
