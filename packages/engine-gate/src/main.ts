/** The gate as a process: listens on `$SANDLOT_DATA/run/engine/docker.sock` until SIGTERM or SIGINT. */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { ConfigError } from '@sandlot/shared/config'
import { messageOf } from '@sandlot/shared/errors'
import { debugProfile } from '@sandlot/sandbox/backends/docker/debug-profile'
import { readSeccompProfile } from '@sandlot/sandbox/backends/docker/seccomp'
import { createAudit } from './audit.ts'
import { readGateConfig } from './config.ts'
import { deploymentId } from './deployment.ts'
import { createEngine } from './engine.ts'
import { createGate } from './gate.ts'
import { listenOn } from './listen.ts'
import { createOperations } from './operations.ts'

async function main(): Promise<void> {
  const config = readGateConfig()
  const audit = createAudit((line) => process.stdout.write(line))
  mkdirSync(dirname(config.socket), { recursive: true, mode: 0o750 })
  const deployment = deploymentId(config.deploymentFile, config.deployment)
  const engine = createEngine(config.engine)
  const { images, runtime, limits, most } = config
  const seccompProfile = await readSeccompProfile()
  const operations = createOperations({
    engine,
    audit,
    deployment,
    images,
    runtime,
    limits,
    most,
    seccompProfile,
    debugProfile: config.debug ? debugProfile(seccompProfile) : undefined,
  })
  // Two streams for each sandbox: a controller that comes back may still have its old one.
  const gate = createGate({ engine, operations, audit, mostStreams: 2 * most.containers + 64 })
  await listenOn(gate, config.socket)
  audit.info({ socket: config.socket, engine: config.engine.shown, deployment }, 'the gate is open')
  await stopped()
  // Streams end here; what runs in the sandboxes goes on.
  process.exit(0)
}

function stopped(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve())
  })
}

if (import.meta.main) {
  try {
    await main()
  } catch (error) {
    const text =
      error instanceof ConfigError ? error.message : `Sandlot’s engine gate cannot start: ${messageOf(error)}`
    process.stderr.write(`${text}\n`)
    process.exit(1)
  }
}
