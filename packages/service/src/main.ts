/** `node main.js`: the service as a process. SIGTERM and SIGINT stop it in good order; a second one at once. */
import { ConfigError } from '@sandlot/shared/config'
import { messageOf } from '@sandlot/shared/errors'
import { readServiceConfig } from './config.ts'
import { startService } from './server.ts'

async function main(): Promise<void> {
  const service = await startService(readServiceConfig())
  // The launcher and people wait for this line. It is the only place where the set-up token appears.
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
  const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
  const hint = taken ? ' Another program listens there; stop it, or set PORT.' : ''
  const detail =
    error instanceof Error && !(error instanceof ConfigError) && !taken ? `\n${error.stack ?? ''}` : ''
  process.stderr.write(`sandlot service: ${messageOf(error)}${hint}${detail}\n`)
  process.exit(1)
}

main().catch(fail)
