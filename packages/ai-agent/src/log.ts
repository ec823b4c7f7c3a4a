/** The only file here that imports pino: JSON lines on stderr (stdout is the protocol on stdio), without secrets. */
import { makeScrubber } from '@sandlot/shared/scrub'
import { pino } from 'pino'
import type { Logger } from 'pino'

export type { Logger } from 'pino'

/** `write` gets one line at a time, scrubbed. */
export function makeLog(
  level: string,
  secrets: readonly string[],
  write: (line: string) => void = (line) => void process.stderr.write(line),
): Logger {
  const scrub = makeScrubber(secrets)
  return pino(
    { level, base: { part: 'ai-agent' }, timestamp: pino.stdTimeFunctions.isoTime },
    { write: (line: string) => write(scrub(line)) },
  )
}
