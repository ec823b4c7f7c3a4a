/** Sandboxes and workspaces as Pods and claims show them, without a call. */
import type { BackendSandbox, BackendVolume, SandboxState } from '../../backend.ts'
import { LABEL } from '../../names.ts'
import { KEY, readLabels, sandboxName } from './labels.ts'
import type { ObjectMeta, PersistentVolumeClaim, Pod } from './objects.ts'

/**
 * Every sandbox: one for each Pod, and a stopped one for each claim whose sandbox has no Pod. Of a
 * claim that was interrupted between the two objects, the PersistentVolumeClaim decides.
 */
export function sandboxesOf(
  pods: readonly Pod[],
  claims: readonly PersistentVolumeClaim[],
): BackendSandbox[] {
  const homes = new Map(claims.map((claim) => [claim.metadata.name, claim]))
  const withPods = pods.map((pod) =>
    sandboxOf(pod, homes.get(readLabels(pod.metadata.labels ?? {})[LABEL.volume] ?? '')),
  )
  const named = new Set(pods.map(({ metadata }) => metadata.name))
  const stopped = claims.flatMap((claim): BackendSandbox[] => {
    const id = claim.metadata.annotations?.[KEY.sandbox]
    if (id === undefined || named.has(id)) return []
    return [sandbox(id, 'stopped', claim.metadata)]
  })
  return [...withPods, ...stopped]
}

/** The sandbox of a Pod, with the claim of its slot where there is one. */
function sandboxOf(pod: Pod, claim: PersistentVolumeClaim | undefined): BackendSandbox {
  const isCurrent = claim !== undefined && isSandboxOf(claim, pod.metadata.name)
  const meta = isCurrent ? claim.metadata : pod.metadata
  return sandbox(pod.metadata.name, stateOf(pod, isCurrent), meta, pod.spec.containers[0]?.image)
}

function sandbox(
  id: string,
  state: SandboxState,
  { labels = {} }: ObjectMeta,
  image?: string,
): BackendSandbox {
  return { id, name: sandboxName(labels), state, labels: readLabels(labels), image }
}

/** True when this claim’s sandbox has or had the Pod of that name. */
export function isSandboxOf({ metadata }: PersistentVolumeClaim, id: string): boolean {
  return metadata.annotations?.[KEY.sandbox] === id
}

export const isEnding = ({ metadata }: Pod | PersistentVolumeClaim): boolean =>
  metadata.deletionTimestamp !== undefined

export const hasEnded = ({ status }: Pod): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed'

export const isGated = ({ spec }: Pod): boolean => (spec.schedulingGates?.length ?? 0) > 0

/** Its supervisor runs, as far as the node said. */
export function isRunning({ status, ...pod }: Pod): boolean {
  const running = status?.containerStatuses?.some(({ state }) => state?.running !== undefined) === true
  return status?.phase === 'Running' && running && !isEnding(pod)
}

/** A Pod that ends is a stopped sandbox, unless its slot has another one by now. */
function stateOf(pod: Pod, isCurrent: boolean): SandboxState {
  if (isEnding(pod)) return isCurrent ? 'stopped' : 'removing'
  if (hasEnded(pod)) return 'stopped'
  return isRunning(pod) ? 'running' : 'created'
}

/** A claim as a workspace. */
export function workspaceOf({ metadata }: PersistentVolumeClaim): BackendVolume {
  return { name: metadata.name, labels: readLabels(metadata.labels ?? {}) }
}
