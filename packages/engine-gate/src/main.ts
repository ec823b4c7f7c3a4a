/**
 * Process of the gate: listens on `$SANDLOT_DATA/run/engine/docker.sock` until SIGTERM or SIGINT.
 */
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { randomBytes } from 'node:crypto'

import { ConfigError } from '@sandlot/shared/config'
import { messageOf, hasCode } from '@sandlot/shared/base/errors'
import { readSeccompProfile } from '@sandlot/sandbox/backends/docker/seccomp'
import { isDeploymentId } from '@sandlot/sandbox/names'

import { createAudit } from './audit.ts'
import { readGateConfig } from './config.ts'
import { createEngine } from './engine.ts'
import { createGate, listenOn } from './gate.ts'
import { Operations } from './operations.ts'

async function main(): Promise<void> {
  const config = readGateConfig()
  const audit = createAudit((line) => process.stdout.write(line))
  mkdirSync(dirname(config.socket), { recursive: true, mode: 0o750 })
  const deployment = deploymentId(config.deploymentFile, config.deployment)
  const engine = createEngine(config.engine)
  const { images, runtime, limits, most } = config
  const operations = new Operations({
    engine,
    audit,
    deployment,
    images,
    runtime,
    limits,
    most,
    seccompProfile: await readSeccompProfile(),
    debugProfile: config.debug ? await readSeccompProfile('debug') : undefined,
  })
  // Two streams per sandbox: a returning controller may still have its old one.
  const gate = createGate({ engine, operations, audit, mostStreams: 2 * most.containers + 64 })
  await listenOn(gate, config.socket)
  audit.info({ socket: config.socket, engine: config.engine.shown, deployment }, 'the gate is open')
  await stopped()
  // Streams end here; commands in sandboxes keep running.
  process.exit(0)
}

function stopped(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve())
  })
}

/**
 * The permanent id of the gate's deployment: `configured`, else the content of `file`, else a new
 * one. It is then in the file for the agent, which may read but not write it. Throws when the file
 * is damaged: with another id every existing sandbox would be invisible.
 */
function deploymentId(file: string, configured: string | undefined): string {
  const stored = read(file)
  if (configured !== undefined) {
    if (stored !== configured) replace(file, configured)
    return configured
  }
  if (stored !== undefined) {
    if (!isDeploymentId(stored))
      throw new Error(`${file} is damaged. Set SANDLOT_DEPLOYMENT to the id that your sandboxes carry.`)
    return stored
  }
  return make(file)
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw new Error(`The deployment's id cannot be read: ${file}.`, { cause: error })
  }
}

function replace(file: string, id: string): void {
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${id}\n`, { mode: 0o640 })
  renameSync(draft, file)
}

/**
 * Written whole and then linked: of two gates that start at once one wins, and both have its id.
 */
function make(file: string): string {
  const id = randomBytes(4).toString('hex')
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${id}\n`, { mode: 0o640, flush: true })
  try {
    linkSync(draft, file)
    return id
  } catch (error) {
    const others = read(file)
    if (others === undefined) throw error
    return others
  } finally {
    rmSync(draft, { force: true })
  }
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
