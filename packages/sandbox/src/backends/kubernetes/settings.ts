/** Settings of the backend, read alike by the agent and by backups. */
import { z } from 'zod'

import type { KubernetesBackendOptions } from './backend.ts'

const MEGABYTE = 1_000_000
const isTrue = (text: string): boolean => text === 'true'
const flag = z.enum(['true', 'false']).transform(isTrue)
/** A name that Kubernetes takes for a Secret, a class or, in one label of it, a namespace. */
const name = (longest: number): z.ZodString =>
  z
    .string()
    .regex(/^[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?$/, 'must be a name of Kubernetes')
    .max(longest)

/** Settings by their environment names. `wholeNumber` parses a decimal from `min` to `max`. */
export function kubernetesVariables(wholeNumber: (min: number, max: number) => z.ZodType<number, string>) {
  return {
    SANDLOT_KUBERNETES_NAMESPACE: name(63).default('sandlot-sandboxes'),
    SANDLOT_KUBERNETES_KUBECONFIG: z.string().optional(),
    SANDLOT_KUBERNETES_STORAGE_CLASS: name(253).optional(),
    SANDLOT_KUBERNETES_MEMORY_REQUEST: z
      .string()
      .regex(/^(0?\.\d+|1(\.0*)?)$/, 'must be over 0 and at most 1')
      .transform(Number)
      .pipe(z.number().min(0.01, 'must be at least 0.01'))
      .default(0.25),
    SANDLOT_KUBERNETES_PULL_SECRET: name(253).optional(),
    SANDLOT_KUBERNETES_USER_NAMESPACES: flag.default(false),
    SANDLOT_KUBERNETES_NETWORK_DOWN: flag.default(true),
    SANDLOT_KUBERNETES_STREAM_MB: wholeNumber(1, 1_000).default(8),
  }
}

type Read = z.output<z.ZodObject<ReturnType<typeof kubernetesVariables>>>

/** `environment`: variables of Kubernetes and kubectl with the way to the cluster. */
export function readKubernetes(
  read: Read,
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
