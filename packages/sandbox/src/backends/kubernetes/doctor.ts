/** Findings about a cluster that need no sandbox: they make nothing on it. */
import { check, type Finding, report, unknown } from '#shared/base/finding'
import type { SandboxSpec } from '../../backend.ts'
import { type AccessOptions, readAccess } from './access.ts'
import { createApi, type KubernetesApi, readable } from './api.ts'
import { KubernetesError } from './api-error.ts'
import { claimTemplate } from './claim-template.ts'
import { CLAIMS, type KubernetesObject, type Pod, PODS, type Resource } from './objects.ts'
import type { PodSettings } from './pod-template.ts'

interface ClusterOptions {
  access: AccessOptions
  settings: Omit<PodSettings, 'namespace'>
  storageClass?: string | undefined
  /** A sandbox as it would be made now. */
  spec: SandboxSpec
  deployment: string
}

/** The first with ValidatingAdmissionPolicy and scheduling gates in every cluster. */
const OLDEST_MINOR = 30
const RIGHTS: readonly [resource: string, subresource: string, verbs: readonly string[]][] = [
  ['pods', '', ['create', 'get', 'list', 'watch', 'patch', 'delete']],
  ['persistentvolumeclaims', '', ['create', 'get', 'list', 'watch', 'patch', 'delete']],
  ['pods', 'exec', ['create', 'get']],
]
const CHART = 'Install the chart of this version for the namespace of the sandboxes (docs/kubernetes.md).'

/** All findings. Rejects with a `SandboxError` where the cluster is out of reach. */
export async function examineCluster(options: ClusterOptions): Promise<Finding[]> {
  const api = createApi(await readAccess(options.access))
  try {
    // First: where it does not answer, nothing else is to be asked.
    const version = await judgeVersion(api)
    const others = [
      judgeRights(api),
      judgePolicy(api),
      judgeClass(api, options),
      judgeRuntime(api, options.spec.runtime),
      quota(api),
      nodes(api),
    ]
    return [version, ...(await Promise.all(others)).flat()]
  } finally {
    api.close()
  }
}

async function judgeVersion(api: KubernetesApi): Promise<Finding> {
  const { gitVersion, minor } = await api.read<{ gitVersion: string; minor: string }>('/version')
  return check('must', 'cluster-version', 'Kubernetes', Number.parseInt(minor, 10) >= OLDEST_MINOR, {
    ok: gitVersion,
    bad: `${gitVersion} is older than 1.${OLDEST_MINOR}`,
    fix: 'Upgrade the cluster.',
  })
}

interface AccessReview extends KubernetesObject {
  spec: { resourceAttributes: Record<string, string> }
  status?: { allowed: boolean }
}

const REVIEWS: Resource<AccessReview> = {
  base: '/apis/authorization.k8s.io/v1',
  plural: 'selfsubjectaccessreviews',
  singular: 'SelfSubjectAccessReview',
  namespaced: false,
}

async function judgeRights(api: KubernetesApi): Promise<Finding[]> {
  const { namespace } = api.access
  const asked = RIGHTS.flatMap(([resource, subresource, verbs]) =>
    verbs.map(async (verb): Promise<string[]> => {
      const resourceAttributes = { namespace, verb, resource, subresource }
      const { status } = await api.create(REVIEWS, { metadata: { name: '' }, spec: { resourceAttributes } })
      return status?.allowed === true ? [] : [`${verb} ${resource}${subresource && `/${subresource}`}`]
    }),
  )
  const missing = (await Promise.all(asked)).flat()
  return [
    check('must', 'rights', 'Rights', missing.length === 0, {
      ok: `all that sandboxes need in the namespace ${namespace}`,
      bad: `in the namespace ${namespace} it may not ${missing.join(', ')}`,
      fix: CHART,
    }),
  ]
}

/** A Pod of no template of ours. A policy in force refuses it. */
async function judgePolicy(api: KubernetesApi): Promise<Finding[]> {
  const [id, name] = ['policy', 'Admission policy']
  const foreign: Pod = {
    metadata: { name: 'sandlot-doctor' },
    spec: { containers: [{ name: 'sbxd', image: 'localhost/none' }] },
  }
  try {
    await api.create(PODS, foreign, undefined, true)
  } catch (error) {
    if (!(error instanceof KubernetesError)) throw error
    return [
      /\bpolicy\b/.test(error.message)
        ? check('must', id, name, true, { ok: 'refuses what is no sandbox', bad: '', fix: '' })
        : unknown('must', id, name, `not tried: ${error.message.replace(/\.$/, '')}`),
    ]
  }
  const bad = 'the agent may make any Pod in the namespace of the sandboxes'
  return [check('must', id, name, false, { ok: '', bad, fix: CHART })]
}

async function judgeClass(api: KubernetesApi, options: ClusterOptions): Promise<Finding[]> {
  const { deployment, spec, storageClass } = options
  const [id, name] = ['storage-class', 'StorageClass']
  const settings = { ...options.settings, namespace: api.access.namespace }
  try {
    const claim = claimTemplate({ deployment, spec, settings, storageClass })
    const made = await api.create(CLAIMS, claim, undefined, true)
    const chosen = made.spec.storageClassName
    const isThere =
      chosen !== undefined && (await exists(api, `/apis/storage.k8s.io/v1/storageclasses/${chosen}`))
    return [
      check('must', id, name, isThere, {
        ok: chosen ?? '',
        bad: chosen === undefined ? 'the cluster has no default' : `the cluster has no ${chosen}`,
        fix: 'Name one of the cluster in SANDLOT_KUBERNETES_STORAGE_CLASS; kubectl get storageclass lists them.',
      }),
    ]
  } catch (error) {
    if (!(error instanceof KubernetesError)) throw error
    return [unknown('must', id, name, error.message.replace(/\.$/, ''))]
  }
}

async function judgeRuntime(api: KubernetesApi, runtime: string | undefined): Promise<Finding[]> {
  if (runtime === undefined) return []
  return [
    check('must', 'runtime', 'Runtime', await exists(api, `/apis/node.k8s.io/v1/runtimeclasses/${runtime}`), {
      ok: runtime,
      bad: `the cluster has no RuntimeClass ${runtime}`,
      fix: 'Install it, or change SANDLOT_SANDBOX_RUNTIME.',
    }),
  ]
}

/** True also where that may not be read. */
async function exists(api: KubernetesApi, path: string): Promise<boolean> {
  return (await readable(api, path)) !== 'absent'
}

/** The rest of each quota of the namespace, if it may be read. */
async function quota(api: KubernetesApi): Promise<Finding[]> {
  type Quotas = { items: { status?: { hard?: Record<string, string>; used?: Record<string, string> } }[] }
  const found = await readable<Quotas>(api, `/api/v1/namespaces/${api.access.namespace}/resourcequotas`)
  if (typeof found === 'string') return []
  const used = found.items.flatMap(({ status }) =>
    Object.entries(status?.hard ?? {}).map(
      ([what, most]) => `${what} ${status?.used?.[what] ?? 0} of ${most}`,
    ),
  )
  return [report('cluster-quota', 'Quota', used.length === 0 ? 'none' : used.join(', '))]
}

/** Runtimes and kernels of the nodes, if they may be read. */
async function nodes(api: KubernetesApi): Promise<Finding[]> {
  type Info = Record<'containerRuntimeVersion' | 'kernelVersion' | 'kubeletVersion', string>
  type Nodes = { items: { status: { nodeInfo: Info } }[] }
  const found = await readable<Nodes>(api, '/api/v1/nodes')
  if (typeof found === 'string') return []
  const kinds = found.items.map(
    ({ status: { nodeInfo: info } }) =>
      `${info.containerRuntimeVersion}, kubelet ${info.kubeletVersion}, Linux ${info.kernelVersion}`,
  )
  return [report('nodes', 'Nodes', `${kinds.length}: ${[...new Set(kinds)].join('; ')}`)]
}
