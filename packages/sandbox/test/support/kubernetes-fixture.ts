import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { testCluster } from '../../../../test/cluster/cluster.ts'
import type { SandboxBackend, SandboxSpec } from '../../src/backend.ts'
import {
  createKubernetesBackend,
  type KubernetesBackendOptions,
} from '../../src/backends/kubernetes/backend.ts'
import { createFileLedger } from '../../src/controller/file-ledger.ts'
import { createSandboxes, type Sandboxes, type SandboxesOptions } from '../../src/controller/sandboxes.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { claimedName, newSlotName, ownerTag, poolName } from '../../src/names.ts'

export interface KubernetesFixture {
  deployment: string
  deploymentKey: Uint8Array
  namespace: string
  /** The digest reference of the sandbox image. */
  image: string
  backend: SandboxBackend
  /** Another controller’s, with caches of its own. */
  another(change?: Partial<KubernetesBackendOptions>): Promise<SandboxBackend>
  /** A controller over the same deployment and ledger; every call is another controller. */
  controller(change?: Partial<SandboxesOptions>): Sandboxes
  /** A spec of this deployment with a slot of its own. */
  spec(change?: Partial<SandboxSpec>): SandboxSpec
  /** Runs kubectl in the namespace. */
  kubectl(...args: string[]): Promise<string>
  /** Removes the namespace with everything in it. */
  dispose(): Promise<void>
}

/** A namespace of its own on the test cluster. Call `dispose` at the end, whatever happened. */
export async function kubernetesFixture(): Promise<KubernetesFixture> {
  const cluster = testCluster()
  const deployment = `test-${randomBytes(4).toString('hex')}`
  const deploymentKey = randomBytes(32)
  const namespace = deployment
  const apply = async (...args: string[]): Promise<void> => void (await cluster.kubectl(...args))
  await apply('create', 'namespace', namespace)
  await apply('label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=privileged')
  // Without it no Pod is admitted; after a start of the API server it comes late.
  await cluster.kubectl('wait', 'serviceaccount/default', '-n', namespace, '--for=create', '--timeout=60s')
  const opened: SandboxBackend[] = []
  const another = async (change: Partial<KubernetesBackendOptions> = {}): Promise<SandboxBackend> => {
    const made = await createKubernetesBackend({
      deployment,
      access: { namespace, kubeconfig: cluster.kubeconfig, environment: {} },
      settings: { memoryRequest: 0.05, userNamespaces: false, networkDown: true },
      streamRate: 1_000_000_000,
      copies: { image: cluster.image, limits: DEFAULT_LIMITS },
      ...change,
    })
    opened.push(made)
    return made
  }
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-kubernetes-'))
  const ledger = createFileLedger(join(folder, 'ledger.json'))
  const controllers: Sandboxes[] = []
  const backend = await another()
  return {
    deployment,
    deploymentKey,
    namespace,
    image: cluster.image,
    backend,
    another,
    controller(change = {}) {
      const made = createSandboxes({
        backend,
        ledger,
        deploymentKey,
        deploymentId: deployment,
        image: cluster.image,
        ...change,
      })
      controllers.push(made)
      return made
    },
    spec(change = {}) {
      const slot = newSlotName()
      return {
        name: claimedName(deployment, slot, ownerTag(deploymentKey, 'tester'), 1),
        slot,
        uid: 30_000 + Math.floor(Math.random() * 30_000),
        volume: poolName(deployment, slot),
        image: cluster.image,
        limits: DEFAULT_LIMITS,
        labels: {},
        ...change,
      }
    },
    kubectl: (...args) => cluster.kubectl('--namespace', namespace, ...args),
    async dispose() {
      for (const controller of controllers) await controller.close()
      for (const backend of opened) await backend.inventory.close()
      await apply('delete', 'namespace', namespace, '--wait=false')
      await rm(folder, { recursive: true, force: true })
    },
  }
}
