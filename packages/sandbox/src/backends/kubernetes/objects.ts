/**
 * Members of Kubernetes objects that this backend reads, named as its API names them. The templates
 * write more.
 */

export interface ObjectMeta {
  name: string
  namespace?: string
  uid?: string
  /** A decimal number that grows with each write to the cluster's store. */
  resourceVersion?: string
  creationTimestamp?: string
  /** Set once its deletion has begun. */
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: Record<string, string>
  annotations?: Record<string, string>
  finalizers?: string[]
}

export interface KubernetesObject {
  apiVersion?: string
  kind?: string
  metadata: ObjectMeta
}

interface Condition {
  type: string
  status: string
  reason?: string
  message?: string
  lastTransitionTime?: string
}

export interface ContainerStatus {
  name: string
  ready: boolean
  restartCount: number
  /** At most one member is set. */
  state?: {
    waiting?: { reason?: string; message?: string }
    running?: { startedAt?: string }
    terminated?: { exitCode: number; signal?: number; reason?: string; message?: string }
  }
}

export interface Pod extends KubernetesObject {
  spec: {
    containers: { name: string; image: string }[]
    volumes?: { name: string; persistentVolumeClaim?: { claimName: string } }[]
    nodeName?: string
    schedulingGates?: { name: string }[]
  }
  status?: {
    phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'
    /** For example `Evicted`. */
    reason?: string
    message?: string
    hostIP?: string
    podIP?: string
    conditions?: Condition[]
    initContainerStatuses?: ContainerStatus[]
    containerStatuses?: ContainerStatus[]
  }
}

export interface PersistentVolumeClaim extends KubernetesObject {
  spec: {
    accessModes: string[]
    resources: { requests: { storage: string } }
    storageClassName?: string
    volumeName?: string
  }
  status?: { phase?: 'Pending' | 'Bound' | 'Lost'; conditions?: Condition[] }
}

/** One operation of a JSON patch (RFC 6902). */
export type PatchOperation =
  | { op: 'add' | 'replace' | 'test'; path: string; value: unknown }
  | { op: 'remove'; path: string }

/** One kind of object, and the place of its collection. */
export interface Resource<T extends KubernetesObject> {
  /** For example `/api/v1`. */
  readonly base: string
  readonly plural: string
  /** False: its collection is the cluster's, not one namespace's. */
  readonly namespaced: boolean
  /** For messages: `Pod`. */
  readonly singular: string
  /** The type of its objects; never set. */
  readonly type?: T
}

export const PODS: Resource<Pod> = { base: '/api/v1', plural: 'pods', singular: 'Pod', namespaced: true }
export const CLAIMS: Resource<PersistentVolumeClaim> = {
  base: '/api/v1',
  plural: 'persistentvolumeclaims',
  singular: 'PersistentVolumeClaim',
  namespaced: true,
}

/** The body of every answer that is not an object, failures included. */
export interface Status {
  kind: 'Status'
  message?: string
  /** For example `AlreadyExists`. */
  reason?: string
  code?: number
  details?: { name?: string; kind?: string }
}
