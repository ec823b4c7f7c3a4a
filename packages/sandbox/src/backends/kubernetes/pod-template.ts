import { createHash } from 'node:crypto'

import type { SandboxSpec } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import { RUN_BYTES, sbxdArguments } from '../../limits.ts'
import { poolName, UID_RANGE } from '../../names.ts'
import { checkSpec, ENVIRONMENT, WORKSPACE } from '../template-parts.ts'
import { KEY, objectLabels, ownerOf, podName } from './labels.ts'

/** Settings of the cluster that every Pod follows. */
export interface PodSettings {
  namespace: string
  /** Share of the memory limit that the scheduler reserves; over 0, at most 1. */
  memoryRequest: number
  /** Secret with which a node pulls the image. */
  pullSecret?: string
  userNamespaces: boolean
  /** An init container takes every network interface but `lo` down. */
  networkDown: boolean
}

interface PodInput {
  deployment: string
  spec: SandboxSpec
  settings: PodSettings
}

/** Container of a Pod in which sbxd runs and `sbxd relay` is executed. */
export const CONTAINER = 'sbxd'

/** Init container that takes the network down and makes the home. */
export const PREPARE = 'prepare'

const SBXD = '/usr/bin/sbxd'
/** Process time that the scheduler reserves: a sandbox is idle most of its life. */
const CPU_REQUEST = 0.02
/** Seconds until a Pod of a node that is lost, or not ready, is marked for deletion. */
const NODE_PATIENCE = 30

/**
 * The only Pod: pure, with every control of the hardening checklist that Kubernetes has. It is not
 * scheduled before its gate is removed. `name`: that of the Pod that it replaces. Throws
 * `invalid_arguments` for a spec that no Pod can be made of.
 */
export function podTemplate({ deployment, spec, settings, name }: PodInput & { name?: string }) {
  const print = fingerprint({ deployment, spec, settings })
  const owner = ownerOf(deployment, spec)
  return {
    apiVersion: 'v1' as const,
    kind: 'Pod' as const,
    metadata: {
      name: name ?? podName(deployment, spec.slot, owner?.generation ?? 0),
      namespace: settings.namespace,
      labels: objectLabels(deployment, spec, print),
      annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' },
    },
    spec: { ...podSpec(spec, settings), schedulingGates: [{ name: KEY.gate }] },
  }
}

/** Container of a Pod that copies a home. */
export const COPY_CONTAINER = 'copy'
/** Seconds after which it ends by itself. */
const COPY_SECONDS = 6 * 3_600
const COPY_BYTES = 256 * 1024 ** 2

/**
 * A Pod in which tar copies the home of this spec: as its sandbox’s, without sbxd. `node`: where
 * the sandbox runs, because a volume may be attached to one node only. Throws `invalid_arguments`.
 */
export function copyTemplate({
  deployment,
  spec,
  settings,
  ...copy
}: PodInput & { name: string; act: 'read' | 'write'; node?: string | undefined }) {
  const reads = copy.act === 'read'
  const print = fingerprint({ deployment, spec, settings })
  const small = { ...spec, limits: { ...spec.limits, memoryBytes: COPY_BYTES } }
  const shared = container(COPY_CONTAINER, small, settings)
  const initContainers = initContainersOf(spec, settings).filter(({ name }) => !reads || name !== 'home')
  return {
    apiVersion: 'v1' as const,
    kind: 'Pod' as const,
    metadata: {
      name: copy.name,
      namespace: settings.namespace,
      labels: { ...objectLabels(deployment, spec, print), [KEY.role]: 'copy' },
    },
    spec: {
      ...podSpec(spec, settings),
      nodeName: copy.node,
      initContainers,
      containers: [
        {
          ...shared,
          command: ['/bin/sleep'],
          args: [String(COPY_SECONDS)],
          // Reads files of every mode, where the namespace permits the network’s container too.
          ...(reads && settings.networkDown ? asRoot(shared, ['DAC_READ_SEARCH']) : {}),
          volumeMounts: [{ name: 'home', mountPath: '/volume', ...(reads ? { readOnly: true } : {}) }],
        },
      ],
      volumes: [{ name: 'home', persistentVolumeClaim: { claimName: spec.volume } }],
    },
  }
}

/**
 * Hash of the Pod that this spec makes now, independent of its slot and owner: image, limits,
 * settings, hardening. Additions by admission are not part of it. Throws `invalid_arguments`.
 */
export function fingerprint({ deployment, spec, settings }: PodInput): string {
  check(deployment, spec, settings)
  const anyone = { ...spec, uid: UID_RANGE.first, volume: '' }
  return createHash('sha256')
    .update(JSON.stringify(podSpec(anyone, settings)))
    .digest('hex')
    .slice(0, 32)
}

function podSpec(spec: SandboxSpec, settings: PodSettings) {
  const { uid, limits, runtime } = spec
  return {
    restartPolicy: 'Never' as const,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // No server answers there: a name is never looked up, in the cluster or outside.
    dnsPolicy: 'None' as const,
    dnsConfig: { nameservers: ['127.0.0.1'] },
    hostname: 'sandbox',
    terminationGracePeriodSeconds: 2,
    hostUsers: settings.userNamespaces ? false : undefined,
    runtimeClassName: runtime,
    ...(settings.pullSecret === undefined ? {} : { imagePullSecrets: [{ name: settings.pullSecret }] }),
    tolerations: ['not-ready', 'unreachable'].map((state) => ({
      key: `node.kubernetes.io/${state}`,
      operator: 'Exists' as const,
      effect: 'NoExecute' as const,
      tolerationSeconds: NODE_PATIENCE,
    })),
    securityContext: {
      runAsUser: uid,
      runAsGroup: uid,
      runAsNonRoot: true,
      fsGroup: uid,
      // Without it the node changes every file of the home at each start.
      fsGroupChangePolicy: 'OnRootMismatch' as const,
      seccompProfile: { type: 'RuntimeDefault' as const },
    },
    initContainers: settings.networkDown ? [prepare(spec, settings)] : initContainersOf(spec, settings),
    containers: [
      {
        ...container(CONTAINER, spec, settings),
        command: [SBXD],
        args: ['--listen', ...sbxdArguments(limits, spec.profile)],
        workingDir: WORKSPACE,
        env: ENVIRONMENT.map((line) => {
          const at = line.indexOf('=')
          return { name: line.slice(0, at), value: line.slice(at + 1) }
        }),
        volumeMounts: [
          // The root of a volume belongs to its driver, which may put files there.
          { name: 'home', mountPath: WORKSPACE, subPath: 'home' },
          { name: 'tmp', mountPath: '/tmp' },
          { name: 'run', mountPath: '/run' },
        ],
      },
    ],
    volumes: [
      { name: 'home', persistentVolumeClaim: { claimName: spec.volume } },
      { name: 'tmp', emptyDir: { medium: 'Memory' as const, sizeLimit: String(limits.tmpBytes) } },
      { name: 'run', emptyDir: { medium: 'Memory' as const, sizeLimit: String(RUN_BYTES) } },
    ],
  }
}

/**
 * Takes the network down, then makes the home as the slot’s uid: both in one init container,
 * because a kubelet polls the end of one only once a second.
 */
function prepare(spec: SandboxSpec, settings: PodSettings) {
  const shared = container(PREPARE, spec, settings)
  return {
    ...shared,
    command: [SBXD],
    args: ['network-down', String(spec.uid)],
    ...asRoot(shared, ['NET_ADMIN', 'SETUID', 'SETGID']),
    volumeMounts: [{ name: 'home', mountPath: '/volume' }],
  }
}

/** The same in steps, for a Pod that copies, or without the right to take the network down. */
function initContainersOf(spec: SandboxSpec, settings: PodSettings) {
  const home = {
    ...container('home', spec, settings),
    // The slot's uid makes it; with -p an existing folder keeps its mode.
    command: ['/bin/mkdir'],
    args: ['-p', '-m', '0700', '/volume/home'],
    volumeMounts: [{ name: 'home', mountPath: '/volume' }],
  }
  if (!settings.networkDown) return [home]
  const network = container('network', spec, settings)
  return [
    home,
    {
      ...network,
      command: [SBXD],
      args: ['network-down'],
      ...asRoot(network, ['NET_ADMIN']),
    },
  ]
}

/** Runs as root with these rights alone. */
function asRoot({ securityContext }: ReturnType<typeof container>, rights: string[]) {
  const capabilities = { drop: ['ALL'], add: rights }
  return {
    securityContext: { ...securityContext, runAsUser: 0, runAsGroup: 0, runAsNonRoot: false, capabilities },
  }
}

/** Parts that all containers of the Pod share. */
function container(name: string, { image, limits }: SandboxSpec, { memoryRequest }: PodSettings) {
  return {
    name,
    image,
    imagePullPolicy: 'IfNotPresent' as const,
    // The node lets everybody write this file of its own disk: no command can enter that folder.
    terminationMessagePath: '/usr/lib/sandlot/closed/end',
    resources: {
      requests: {
        // Less than the limit: the kernel would rather end processes of the node than those of a
        // Guaranteed Pod.
        cpu: milli(Math.min(CPU_REQUEST, limits.cpus / 2)),
        memory: String(Math.ceil(limits.memoryBytes * memoryRequest)),
      },
      limits: { cpu: milli(limits.cpus), memory: String(limits.memoryBytes) },
    },
    securityContext: {
      privileged: false,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
  }
}

function milli(cpus: number): string {
  return `${Math.max(1, Math.round(cpus * 1000))}m`
}

function check(deployment: string, spec: SandboxSpec, settings: PodSettings): void {
  checkSpec(spec)
  if (spec.volume !== poolName(deployment, spec.slot))
    throw invalid(`The slot ${spec.slot} has no volume ${spec.volume}.`)
  if (!/@sha256:[0-9a-f]{64}$/.test(spec.image))
    throw invalid(
      `On Kubernetes the sandbox image must be named by its digest, not ${spec.image}: NAME@sha256:… (SANDLOT_SANDBOX_IMAGE).`,
    )
  if (!(settings.memoryRequest > 0 && settings.memoryRequest <= 1))
    throw invalid(
      `The reserved share of the memory must be over 0 and at most 1, not ${settings.memoryRequest}.`,
    )
}

function invalid(text: string): SandboxError {
  return new SandboxError('invalid_arguments', text)
}
