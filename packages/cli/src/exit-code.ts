import { ConfigError } from '@sandlot/shared/config'
import { failureLines, ShownError, StepError } from './steps.ts'
import { StopRequest } from './processes/stop-signals.ts'

/**
 * Prints an error unless it was shown. Returns 2 for configuration, 130 or 143 for a stop signal,
 * else 1.
 */
export function exitCodeOf(error: unknown, write: (text: string) => void): number {
  const cause = error instanceof ShownError ? error.cause : error
  if (cause instanceof StopRequest) return cause.stop === 'SIGINT' ? 130 : 143
  if (error instanceof ShownError) return cause instanceof ConfigError ? 2 : 1
  if (cause instanceof ConfigError) {
    write(`${cause.message}\n`)
    return 2
  }
  if (cause instanceof StepError) write(`${failureLines(cause).join('\n')}\n`)
  else write(`${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}\n`)
  return 1
}
