/**
 * Setup of every example: a deployment whose key and ledger are stored in a folder, so that it is
 * found again.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { createFileLedger } from '@sandlot/sandbox/file-ledger'
import { createSandboxes, type Sandboxes, type SandboxesOptions } from '@sandlot/sandbox/sandboxes'

/** `folder`: whoever has what is in it can reach every user's sandbox. */
export function openSandboxes(folder: string, change: Partial<SandboxesOptions> = {}): Sandboxes {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const file = join(folder, 'deployment.json')
  const fresh = { id: `example-${randomBytes(4).toString('hex')}`, key: randomBytes(32).toString('hex') }
  try {
    writeFileSync(file, JSON.stringify(fresh), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
  const { id, key } = JSON.parse(readFileSync(file, 'utf8')) as typeof fresh
  return createSandboxes({
    backend: createDockerBackend({ deployment: id }),
    ledger: createFileLedger(join(folder, 'ledger.json')),
    deploymentId: id,
    deploymentKey: Buffer.from(key, 'hex'),
    image: 'sandlot/sandbox:latest',
    ...change,
  })
}

/** The folder on the command line. */
export function folderFromArguments(): string {
  const folder = process.argv[2]
  if (folder === undefined) throw new Error('usage: node <example> <folder to keep the deployment in>')
  return folder
}
