/** A deployment of one test over a backend: its controllers, and specs of sandboxes. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { SandboxBackend, SandboxSpec } from '../../src/backend.ts'
import { createFileLedger } from '../../src/controller/file-ledger.ts'
import { createSandboxes, type Sandboxes, type SandboxesOptions } from '../../src/controller/sandboxes.ts'
import type { SandboxLedger } from '../../src/ledger.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { claimedName, newSlotName, ownerTag, poolName } from '../../src/names.ts'

export interface Deployment {
  deployment: string
  deploymentKey: Uint8Array
  /** Image of its sandboxes. */
  image: string
  backend: SandboxBackend
  ledger: SandboxLedger
  /** Removed at the end. Holds the ledger. */
  folder: string
  /** A spec of this deployment with a slot of its own. */
  spec(change?: Partial<SandboxSpec>): SandboxSpec
  /** A controller over the same deployment and ledger; every call is another controller. */
  controller(change?: Partial<SandboxesOptions>): Sandboxes
  /** Closes the controllers and removes the folder. */
  close(): Promise<void>
}

/** Starts nothing. `open` receives the id of the deployment. */
export async function makeDeployment(
  image: string,
  open: (deployment: string) => SandboxBackend | Promise<SandboxBackend>,
): Promise<Deployment> {
  const deployment = `test-${randomBytes(4).toString('hex')}`
  const deploymentKey = randomBytes(32)
  const backend = await open(deployment)
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-deployment-'))
  const ledger = createFileLedger(join(folder, 'ledger.json'))
  const controllers: Sandboxes[] = []
  return {
    deployment,
    deploymentKey,
    image,
    backend,
    ledger,
    folder,
    spec(change = {}) {
      const slot = newSlotName()
      return {
        name: claimedName(deployment, slot, ownerTag(deploymentKey, 'tester'), 1),
        slot,
        uid: 30_000 + Math.floor(Math.random() * 30_000),
        volume: poolName(deployment, slot),
        image,
        limits: DEFAULT_LIMITS,
        labels: {},
        ...change,
      }
    },
    controller(change = {}) {
      const all = { backend, ledger, deploymentKey, deploymentId: deployment, image, ...change }
      const made = createSandboxes(all)
      controllers.push(made)
      return made
    },
    async close() {
      for (const controller of controllers) await controller.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
