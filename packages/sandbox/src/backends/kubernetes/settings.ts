/** Settings of the backend, read alike by the agent and by backups. */
import type { KubernetesBackendOptions } from './backend.ts'

const MEGABYTE = 1_000_000

interface KubernetesSettings {
  SANDLOT_KUBERNETES_NAMESPACE: string
  SANDLOT_KUBERNETES_KUBECONFIG: string | undefined
  SANDLOT_KUBERNETES_STORAGE_CLASS: string | undefined
  /** Share of its memory that each sandbox reserves. */
  SANDLOT_KUBERNETES_MEMORY_REQUEST: number
  SANDLOT_KUBERNETES_PULL_SECRET: string | undefined
  SANDLOT_KUBERNETES_USER_NAMESPACES: boolean
  SANDLOT_KUBERNETES_NETWORK_DOWN: boolean
  /** Megabytes per second. */
  SANDLOT_KUBERNETES_STREAM_MB: number
}

/** `environment`: variables of Kubernetes and kubectl with the way to the cluster. */
export function readKubernetes(
  read: KubernetesSettings,
  { KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT, KUBECONFIG }: NodeJS.ProcessEnv,
): Omit<KubernetesBackendOptions, 'deployment'> {
  return {
    access: {
      namespace: read.SANDLOT_KUBERNETES_NAMESPACE,
      kubeconfig: read.SANDLOT_KUBERNETES_KUBECONFIG,
      environment: { KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT, KUBECONFIG },
    },
    settings: {
      memoryRequest: read.SANDLOT_KUBERNETES_MEMORY_REQUEST,
      userNamespaces: read.SANDLOT_KUBERNETES_USER_NAMESPACES,
      networkDown: read.SANDLOT_KUBERNETES_NETWORK_DOWN,
      pullSecret: read.SANDLOT_KUBERNETES_PULL_SECRET,
    },
    storageClass: read.SANDLOT_KUBERNETES_STORAGE_CLASS,
    streamRate: read.SANDLOT_KUBERNETES_STREAM_MB * MEGABYTE,
  }
}
