/**
 * `node main.js`: the service as a process. SIGTERM and SIGINT stop it gracefully; a second one at
 * once.
 */
import { ConfigError } from '@sandlot/shared/config'
import { startProblem } from '@sandlot/storage/plain-words'
import { hasCode, messageOf } from '@sandlot/shared/base/errors'
import { keepThreadLimits } from '@sandlot/shared/node/thread-limits'
import { readServiceConfig } from './config.ts'
import { endOwner } from './http/own-errors.ts'
import { startService } from './server.ts'

async function main(): Promise<void> {
  keepThreadLimits()
  process.on('uncaughtException', (error) => endOwner(error) || fail(error))
  const service = await startService(readServiceConfig())
  // The launcher and people wait for this line. It is the only place where the set-up token
  // appears.
  process.stdout.write(`Sandlot is ready: ${service.entryUrl}\n`)

  let stopping = false
  const stop = (): void => {
    if (stopping) process.exit(1)
    stopping = true
    service.close().then(
      () => process.exit(0),
      (error: unknown) => fail(error),
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

function fail(error: unknown): never {
  const known = error instanceof ConfigError ? error.message : (startProblem(error) ?? portProblem(error))
  // Anything else is a bug, located by its stack.
  const words = known ?? (error instanceof Error ? (error.stack ?? error.message) : String(error))
  process.stderr.write(`sandlot service: ${words}\n`)
  process.exit(1)
}

function portProblem(error: unknown): string | undefined {
  return hasCode(error, 'EADDRINUSE')
    ? `${messageOf(error)} Another program listens there; stop it, or set PORT.`
    : undefined
}

main().catch(fail)
