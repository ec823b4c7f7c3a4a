/** Logs lines of JSON on stderr, with credentials redacted. */
import { makeScrubber } from '@sandlot/shared/base/scrub'

export interface Log {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  /** Redacts credentials in a text. */
  scrub(text: string): string
}

export function makeLog(
  part: string,
  secrets: readonly string[],
  write: (line: string) => void = (line) => void process.stderr.write(line),
): Log {
  const scrub = makeScrubber(secrets)
  const say =
    (level: string) =>
    (fields: Record<string, unknown>, msg: string): void =>
      write(`${scrub(JSON.stringify({ level, time: new Date().toISOString(), part, ...fields, msg }))}\n`)
  return { info: say('info'), warn: say('warn'), scrub }
}
