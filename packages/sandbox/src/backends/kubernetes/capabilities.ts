import type { BackendCapabilities } from '../../backend.ts'
import type { KubernetesApi } from './api.ts'
import type { PodSettings } from './pod-template.ts'

/** Sentences for an operator about what Docker gives a sandbox and a cluster does not. */
const ALWAYS = [
  'Kubernetes limits the processes of a sandbox only by the kubelet’s podPidsLimit: set it on each node.',
  'Kubernetes masks fewer paths of /proc and /sys than Sandlot does on Docker, and sets no limits on IPC objects; the memory limit counts them.',
  'On nodes with cgroup v2, running out of memory ends all of a sandbox unless the kubelet has singleProcessOOMKill.',
  'The disk budget of a sandbox is watched, and its volume is a wall only where the storage class enforces its size.',
]

export async function clusterCapabilities(
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
