/** Findings about the cluster that will run sandboxes. */
import { randomBytes } from 'node:crypto'

import { check, failed, type Finding, inOrder, report } from '#shared/base/finding'
import type { SandboxLimits, SandboxProfile, SandboxSpec } from '../backend.ts'
import { createKubernetesBackend, type KubernetesBackendOptions } from '../backends/kubernetes/backend.ts'
import { examineCluster } from '../backends/kubernetes/doctor.ts'
import { connectOpened, open } from '../controller/connect-opened.ts'
import { deriveStateKey } from '../controller/key.ts'
import { judgeProof, probeSandbox } from '../controller/proof.ts'
import { SandboxError } from '../errors.ts'
import { DEFAULT_LIMITS, diskBudget } from '../limits.ts'
import { newSlotName, poolName, slotLabels, UID_RANGE } from '../names.ts'

interface Options {
  kubernetes: Omit<KubernetesBackendOptions, 'deployment'>
  image: string
  limits?: SandboxLimits
  runtime?: string | undefined
  profile?: SandboxProfile
  /** Makes a sandbox of a deployment of its own, attacks from inside, and removes it. */
  attack: boolean
}

const START_MS = 120_000

/** All findings, `must` first. Never rejects: a failed query is a finding. */
export async function examineKubernetes(options: Options): Promise<Finding[]> {
  const deployment = `doctor-${randomBytes(4).toString('hex')}`
  const spec = specOf(deployment, options)
  try {
    const findings = await examineCluster({ ...options.kubernetes, deployment, spec })
    const attacked = options.attack ? await attack(deployment, spec, options) : []
    return inOrder([...findings, ...attacked])
  } catch (error) {
    return [inWords('cluster', 'Cluster', error)]
  }
}

/** One of the pool: what has an owner only an administrator removes. */
function specOf(deployment: string, { image, limits, runtime, profile }: Options): SandboxSpec {
  const slot = newSlotName()
  const uid = UID_RANGE.first
  const volume = poolName(deployment, slot)
  return {
    name: volume,
    slot,
    uid,
    volume,
    image,
    limits: limits ?? DEFAULT_LIMITS,
    labels: slotLabels(deployment, { slot, uid, volume }),
    runtime,
    ...(profile === undefined || profile === 'default' ? {} : { profile }),
  }
}

async function attack(deployment: string, spec: SandboxSpec, options: Options): Promise<Finding[]> {
  const backend = await createKubernetesBackend({ ...options.kubernetes, deployment })
  const signal = AbortSignal.timeout(START_MS)
  const deploymentKey = randomBytes(32)
  try {
    const from = performance.now()
    const made = await backend.create(spec, signal)
    const opened = await open(made, backend, signal)
    const sandbox = await connectOpened(
      spec.slot,
      opened,
      { backend, deploymentKey },
      {
        stateKey: deriveStateKey(deploymentKey, spec.slot),
        epoch: 1,
        signal,
        disk: diskBudget(spec.limits),
      },
    )
    const took = Math.round(performance.now() - from)
    try {
      const proof = await probeSandbox(sandbox, await backend.inventory.unreachable?.(made.id))
      const { warnings } = await backend.inventory.capabilities(signal)
      return [
        check('must', 'sandbox', 'A sandbox', true, {
          ok: `made and reached in ${took} ms`,
          bad: '',
          fix: '',
        }),
        ...judgeProof(proof, options.profile),
        ...warnings.map((warning, at) =>
          report(`cluster-gives-${at + 1}`, 'On a cluster', warning.replace(/\.$/, '')),
        ),
        report('kernel', 'Kernel of a sandbox', proof.get('kernel')?.slice(0, 100) ?? 'not said'),
      ]
    } finally {
      await sandbox.close()
    }
  } catch (error) {
    return [inWords('sandbox', 'A sandbox', error)]
  } finally {
    for (const { id } of await backend.list({}).catch(() => [])) await backend.remove(id)
    await backend.inventory.volumes.remove(spec.volume)
    await backend.inventory.close()
  }
}

function inWords(id: string, name: string, error: unknown): Finding {
  if (!(error instanceof SandboxError)) throw error
  return failed('must', id, name, error.message.replace(/\.$/, ''), 'See docs/kubernetes.md.')
}
