/** The members of Kubernetes objects that this backend writes or reads, named as its API names them. */

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

export interface Condition {
  type: string
  status: 'True' | 'False' | 'Unknown'
  reason?: string
  message?: string
  lastTransitionTime?: string
}

export interface Container {
  name: string
  image: string
  imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never'
  command?: string[]
  args?: string[]
  env?: { name: string; value: string }[]
  workingDir?: string
  volumeMounts?: { name: string; mountPath: string; subPath?: string; readOnly?: boolean }[]
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> }
  securityContext?: ContainerSecurityContext
}

export interface ContainerSecurityContext {
  runAsUser?: number
  runAsGroup?: number
  runAsNonRoot?: boolean
  privileged?: boolean
  allowPrivilegeEscalation?: boolean
  readOnlyRootFilesystem?: boolean
  capabilities?: { add?: string[]; drop?: string[] }
  seccompProfile?: { type: 'RuntimeDefault' | 'Unconfined' | 'Localhost'; localhostProfile?: string }
}

export interface PodSecurityContext {
  runAsUser?: number
  runAsGroup?: number
  runAsNonRoot?: boolean
  fsGroup?: number
  fsGroupChangePolicy?: 'Always' | 'OnRootMismatch'
  supplementalGroups?: number[]
  seccompProfile?: ContainerSecurityContext['seccompProfile']
}

export interface Toleration {
  key?: string
  operator?: 'Exists' | 'Equal'
  value?: string
  effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute'
  tolerationSeconds?: number
}

export interface Volume {
  name: string
  emptyDir?: { medium?: 'Memory' | ''; sizeLimit?: string }
  persistentVolumeClaim?: { claimName: string; readOnly?: boolean }
}

export interface PodSpec {
  containers: Container[]
  initContainers?: Container[]
  volumes?: Volume[]
  nodeName?: string
  hostname?: string
  restartPolicy?: 'Always' | 'OnFailure' | 'Never'
  terminationGracePeriodSeconds?: number
  automountServiceAccountToken?: boolean
  serviceAccountName?: string
  enableServiceLinks?: boolean
  hostUsers?: boolean
  dnsPolicy?: 'ClusterFirst' | 'Default' | 'None' | 'ClusterFirstWithHostNet'
  dnsConfig?: { nameservers?: string[]; searches?: string[] }
  runtimeClassName?: string
  priorityClassName?: string
  imagePullSecrets?: { name: string }[]
  schedulingGates?: { name: string }[]
  securityContext?: PodSecurityContext
  tolerations?: Toleration[]
}

/** At most one member is set. */
export interface ContainerState {
  waiting?: { reason?: string; message?: string }
  running?: { startedAt?: string }
  terminated?: { exitCode: number; signal?: number; reason?: string; message?: string; finishedAt?: string }
}

export interface ContainerStatus {
  name: string
  ready: boolean
  restartCount: number
  state?: ContainerState
  lastState?: ContainerState
  imageID?: string
}

export interface Pod extends KubernetesObject {
  spec: PodSpec
  status?: {
    phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'
    /** For example `Evicted`. */
    reason?: string
    message?: string
    conditions?: Condition[]
    podIP?: string
    hostIP?: string
    startTime?: string
    initContainerStatuses?: ContainerStatus[]
    containerStatuses?: ContainerStatus[]
  }
}

export interface PersistentVolumeClaim extends KubernetesObject {
  spec: {
    accessModes: string[]
    resources: { requests: { storage: string } }
    storageClassName?: string
    volumeMode?: 'Filesystem' | 'Block'
    volumeName?: string
  }
  status?: {
    phase?: 'Pending' | 'Bound' | 'Lost'
    capacity?: { storage?: string }
    conditions?: Condition[]
  }
}

export interface KubernetesEvent extends KubernetesObject {
  involvedObject: { kind?: string; name?: string; uid?: string }
  type?: 'Normal' | 'Warning'
  reason?: string
  message?: string
  lastTimestamp?: string | null
  eventTime?: string | null
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
  /** For messages: `pod`. */
  readonly singular: string
  /** Of the objects; never set. */
  readonly type?: T
}

const core = <T extends KubernetesObject>(plural: string, singular: string): Resource<T> => ({
  base: '/api/v1',
  plural,
  singular,
  namespaced: true,
})

export const PODS = core<Pod>('pods', 'Pod')
export const CLAIMS = core<PersistentVolumeClaim>('persistentvolumeclaims', 'PersistentVolumeClaim')
export const EVENTS = core<KubernetesEvent>('events', 'Event')

/** The body of every answer that is not an object, failures included. */
export interface Status {
  kind: 'Status'
  status?: 'Success' | 'Failure'
  message?: string
  /** For example `AlreadyExists`. */
  reason?: string
  code?: number
  details?: {
    name?: string
    group?: string
    kind?: string
    retryAfterSeconds?: number
    causes?: { reason?: string; message?: string; field?: string }[]
  }
}
