/** The only file that imports pino: JSON lines on stdout, scrubbed. */
import { pino } from 'pino'
import type { Logger } from 'pino'

export type { Logger } from 'pino'

/** `write` gets one line at a time, scrubbed. */
export function makeLog(
  level: string,
  scrub: (text: string) => string,
  write: (line: string) => void = (line) => void process.stdout.write(line),
): Logger {
  return pino(
    { level, base: { part: 'service' }, timestamp: pino.stdTimeFunctions.isoTime },
    { write: (line: string) => write(scrub(line)) },
  )
}
