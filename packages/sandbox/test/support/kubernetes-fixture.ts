import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { testCluster } from '../../../../test/cluster/cluster.ts'
import type { SandboxBackend } from '../../src/backend.ts'
import {
  createKubernetesBackend,
  type KubernetesBackendOptions,
} from '../../src/backends/kubernetes/backend.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { type Deployment, makeDeployment } from './deployment.ts'

export interface KubernetesFixture extends Omit<Deployment, 'close'> {
  namespace: string
  /** Options of its backend. */
  options: KubernetesBackendOptions
  /** Another controller’s, with caches of its own. */
  another(change?: Partial<KubernetesBackendOptions>): Promise<SandboxBackend>
  /** Runs kubectl in the namespace. */
  kubectl(...args: string[]): Promise<string>
  /** Applies an object in the namespace. */
  apply(object: object): Promise<void>
  /** Removes the namespace with everything in it. */
  dispose(): Promise<void>
}

/** A namespace of its own on the test cluster. Call `dispose` at the end, whatever happened. */
export async function kubernetesFixture(): Promise<KubernetesFixture> {
  const cluster = testCluster()
  const opened: SandboxBackend[] = []
  const open = async (options: KubernetesBackendOptions): Promise<SandboxBackend> => {
    const backend = await createKubernetesBackend(options)
    opened.push(backend)
    return backend
  }
  const optionsOf = (deployment: string): KubernetesBackendOptions => ({
    deployment,
    access: { namespace: deployment, kubeconfig: cluster.kubeconfig, environment: {} },
    settings: { memoryRequest: 0.05, userNamespaces: false, networkDown: true },
    streamRate: 1_000_000_000,
    copies: { image: cluster.image, limits: DEFAULT_LIMITS },
  })
  const { close, ...made } = await makeDeployment(cluster.image, (deployment) => open(optionsOf(deployment)))
  const namespace = made.deployment
  const options = optionsOf(namespace)
  const kubectl = (...args: string[]): Promise<string> => cluster.kubectl('--namespace', namespace, ...args)
  await cluster.kubectl('create', 'namespace', namespace)
  await cluster.kubectl('label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=privileged')
  // Without it no Pod is admitted; after a start of the API server it comes late.
  await kubectl('wait', 'serviceaccount/default', '--for=create', '--timeout=60s')
  return {
    ...made,
    namespace,
    options,
    another: (change = {}) => open({ ...options, ...change }),
    kubectl,
    async apply(object) {
      const file = join(made.folder, 'object.json')
      await writeFile(file, JSON.stringify(object))
      await kubectl('apply', '-f', file)
    },
    async dispose() {
      await close()
      for (const backend of opened) await backend.inventory.close()
      await cluster.kubectl('delete', 'namespace', namespace, '--wait=false')
    },
  }
}
