import type { BackendCapabilities, FreeSpace, SandboxBackend, SandboxSpec } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import { isDeploymentId } from '../../names.ts'
import { type AccessOptions, readAccess } from './access.ts'
import { createApi, type KubernetesApi } from './api.ts'
import { Claims } from './claims.ts'
import { Copies, type CopiesFrom } from './copies.ts'
import { claimTemplate } from './claim-template.ts'
import { selectorOf } from './labels.ts'
import { CLAIMS, PODS } from './objects.ts'
import { StreamPace } from './pace.ts'
import { fingerprint, podTemplate, type PodSettings } from './pod-template.ts'
import { Pods } from './pods.ts'
import { surroundings } from './surroundings.ts'
import { createCache } from './watch.ts'

export interface KubernetesBackendOptions {
  /** Only Pods and claims of this deployment are visible. `[a-z0-9-]`, at most 40. */
  deployment: string
  access: AccessOptions
  settings: Omit<PodSettings, 'namespace'>
  /** Image of Pods that copy homes, and limits of homes that they make. Default: none copies. */
  copies?: CopiesFrom
  /** StorageClass of homes; default the cluster’s. */
  storageClass?: string
  /** Bytes a second between one sandbox and the API server; an agent has four times that. */
  streamRate: number
}

/**
 * Sandboxes as Pods of one namespace of a Kubernetes cluster, and their homes as its claims.
 * Nothing is contacted before the first call. Throws `invalid_arguments` for an invalid deployment
 * id; every method rejects with a `SandboxError`.
 */
export async function createKubernetesBackend(options: KubernetesBackendOptions): Promise<SandboxBackend> {
  const { deployment, storageClass } = options
  if (!isDeploymentId(deployment)) {
    throw new SandboxError(
      'invalid_arguments',
      `"${deployment}" is not a deployment id: lower-case letters, digits and dashes, at most 40.`,
    )
  }
  const access = await readAccess(options.access)
  const api = createApi(access)
  const settings: PodSettings = { ...options.settings, namespace: access.namespace }
  const selection = { labels: selectorOf(deployment) }
  const cache = createCache(api, PODS, selection)
  const claimCache = createCache(api, CLAIMS, selection)
  const claims = new Claims({
    api,
    deployment,
    cache: claimCache,
    claimOf: (spec) => claimTemplate({ deployment, spec, settings, storageClass }),
  })
  const print = (spec: SandboxSpec): string => fingerprint({ deployment, spec, settings })
  const pace = new StreamPace(options.streamRate)
  const copies = new Copies({ api, deployment, settings, claims, pace, from: options.copies })
  const pods = new Pods({
    api,
    deployment,
    cache,
    claimCache,
    claims,
    podOf: (spec, name) => podTemplate({ deployment, spec, settings, name }),
    fingerprint: print,
    pace,
  })
  return {
    create: (spec, signal) => pods.create(spec, signal),
    open: ({ id }, signal) => pods.open(id, signal),
    stop: (id) => pods.stop(id),
    pause: unpausable,
    resume: unpausable,
    claim: (id, owner) => pods.claim(id, owner),
    remove: (id) => pods.remove(id),
    list: (labels) => pods.list(labels),
    inventory: {
      capabilities: (signal) => clusterCapabilities(api, settings, signal),
      engineId: () => clusterId(api),
      inspect: (idOrName) => pods.inspect(idOrName),
      fingerprint: async (spec) => print(spec),
      volumes: claims,
      unreachable: async (id) => surroundings(access.server, await cache.list(), id),
      copies,
      hostDisk: async () => UNBOUNDED,
      health: () => api.health(),
      async close() {
        cache.close()
        claimCache.close()
        copies.close()
        api.close()
      },
    },
  }
}

/** Each home is a volume of its own, so none takes the space of another. */
const UNBOUNDED: FreeSpace = { bytes: Number.POSITIVE_INFINITY, files: Number.POSITIVE_INFINITY }

async function unpausable(): Promise<never> {
  throw new SandboxError('engine_unavailable', 'Kubernetes does not pause a Pod; stop it instead.')
}

/** The same from wherever the cluster is reached: its authority is an object of each namespace. */
async function clusterId(api: KubernetesApi): Promise<string> {
  const path = `/api/v1/namespaces/${api.access.namespace}/configmaps/kube-root-ca.crt`
  const { metadata } = await api.read<{ metadata: { uid: string } }>(path)
  return metadata.uid
}

/** Sentences for an operator about what Docker gives a sandbox and a cluster does not. */
const ALWAYS = [
  'Kubernetes limits the processes of a sandbox only by the kubelet’s podPidsLimit: set it on each node.',
  'Kubernetes masks fewer paths of /proc and /sys than Sandlot does on Docker, and sets no limits on IPC objects; the memory limit counts them.',
  'On nodes with cgroup v2, running out of memory ends all of a sandbox unless the kubelet has singleProcessOOMKill.',
  'The disk budget of a sandbox is watched, and its volume is a wall only where the storage class enforces its size.',
]

async function clusterCapabilities(
  api: KubernetesApi,
  settings: PodSettings,
  signal?: AbortSignal,
): Promise<BackendCapabilities> {
  const { gitVersion } = await api.read<{ gitVersion: string }>('/version', signal)
  return {
    name: 'kubernetes',
    isolates: true,
    version: gitVersion.replace(/^v/, ''),
    runtimes: [],
    cgroup: 'none',
    quota: 'soft',
    pause: false,
    warnings: [
      ...ALWAYS,
      ...(settings.networkDown
        ? []
        : [
            'SANDLOT_KUBERNETES_NETWORK_DOWN is false: a sandbox keeps its network interface, so only NetworkPolicies separate it. Commands run only while the proof finds nothing that answers.',
          ]),
      ...(settings.userNamespaces
        ? []
        : ['Sandboxes have no user namespace (SANDLOT_KUBERNETES_USER_NAMESPACES).']),
    ],
  }
}
