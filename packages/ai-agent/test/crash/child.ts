/**
 * One life as a process of its own: kills itself at the given point, or runs to the end of the
 * script.
 */
import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { createFileLedger } from '@sandlot/sandbox/file-ledger'
import { createSandboxes } from '@sandlot/sandbox/sandboxes'
import type { World } from './bench.ts'
import { live } from './bench.ts'
import { Life } from './life.ts'
import { SCRIPTS } from './scripts.ts'

/** The argument of the process, as JSON. */
export interface ChildTask {
  script: string
  folder: string
  baseUrl: string
  endsAt: number
  mcpUrl?: string
  docker?: { deployment: string; key: string; image: string; ledger: string; host?: string }
}

const task = JSON.parse(process.argv[2] ?? '') as ChildTask
const script = SCRIPTS.find(({ name }) => name === task.script)
if (script === undefined) throw new Error(`There is no script “${task.script}”.`)
const { folder, baseUrl, mcpUrl, docker } = task
const world: World = { folder, baseUrl, mcpUrl }
if (docker !== undefined) {
  const { deployment, key, image, ledger, host } = docker
  const backend = createDockerBackend({ deployment, dockerHost: host })
  const options = { deploymentId: deployment, deploymentKey: Buffer.from(key, 'hex'), image }
  world.sandboxes = () => createSandboxes({ backend, ledger: createFileLedger(ledger), ...options })
}
const life = new Life(task.endsAt, () => process.kill(process.pid, 'SIGKILL'))
await live(script, world, life)
// Connections to the engine that are still open belong to no code here.
process.exit(0)
