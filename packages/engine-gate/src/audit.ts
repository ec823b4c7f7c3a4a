/** Audit log of the gate, as JSON lines. */

export interface Audit {
  info(entry: Record<string, unknown>, message: string): void
  /** A refusal or a failure. Beyond a rate, entries are only counted in the next line. */
  warn(entry: Record<string, unknown>, message: string): void
}

/** pino's numbers, so that all processes' logs are alike. */
const LEVEL = { info: 30, warn: 40 } as const
const WARNINGS_A_SECOND = 20

export function createAudit(write: (line: string) => void, now: () => number = Date.now): Audit {
  let second = 0
  let written = 0
  let withheld = 0

  const line = (level: keyof typeof LEVEL, entry: Record<string, unknown>, msg: string): void =>
    write(`${JSON.stringify({ level: LEVEL[level], time: now(), name: 'engine-gate', ...entry, msg })}\n`)

  return {
    info: (entry, message) => line('info', entry, message),
    warn(entry, message) {
      const current = Math.floor(now() / 1000)
      if (current !== second) {
        second = current
        written = 0
      }
      written += 1
      if (written > WARNINGS_A_SECOND) {
        withheld += 1
        return
      }
      line('warn', withheld > 0 ? { ...entry, withheld } : entry, message)
      withheld = 0
    },
  }
}
