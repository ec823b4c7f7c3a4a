/** Reasons why a Pod does not run, in words. */
import { SandboxError } from '../../errors.ts'
import type { ContainerStatus, PersistentVolumeClaim, Pod } from './objects.ts'
import { PREPARE } from './pod-template.ts'

/** Reasons that no waiting changes; others may pass. */
const FINAL = new Set([
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImagePullBackOff',
  'ImageInspectError',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
])

/** Exit code after SIGKILL. */
const KILLED = 137

interface PodProblem {
  error: SandboxError
  /** Waiting does not help. */
  isFinal: boolean
}

/** Why it does not run (yet), with its claim; undefined while nothing is wrong. */
export function podProblem(pod: Pod, claim: PersistentVolumeClaim | undefined): PodProblem | undefined {
  return waitingContainer(pod) ?? failedStart(pod) ?? unscheduled(pod, claim)
}

function waitingContainer({ status, metadata }: Pod): PodProblem | undefined {
  for (const { name, state } of statuses(status)) {
    const { reason = '', message = '' } = state?.waiting ?? {}
    if (reason === '' || reason === 'PodInitializing' || reason === 'ContainerCreating') continue
    const image = /Image|Pull/.test(reason)
    return {
      isFinal: FINAL.has(reason),
      error: new SandboxError(
        'engine_unavailable',
        image
          ? `The node could not get the sandbox image (${reason}: ${message}). Check SANDLOT_SANDBOX_IMAGE, the registry and its pull secret.`
          : `The node could not start the container ${name} of ${metadata.name} (${reason}: ${message}). Look at its events: kubectl describe pod ${metadata.name}.`,
      ),
    }
  }
  return undefined
}

/** An init container that failed, or a Pod that its node refused or ended. */
function failedStart({ status, metadata }: Pod): PodProblem | undefined {
  if (status?.phase !== 'Failed') return undefined
  const failed = statuses(status).find(({ state }) => (state?.terminated?.exitCode ?? 0) !== 0)
  const end = failed?.state?.terminated
  return { isFinal: true, error: endOf(status.reason, status.message, metadata.name, failed?.name, end) }
}

function unscheduled(
  { status, metadata }: Pod,
  claim: PersistentVolumeClaim | undefined,
): PodProblem | undefined {
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (scheduled?.status !== 'False' || scheduled.reason === 'SchedulingGated') return undefined
  const { message = '' } = scheduled
  // The scheduler mentions claims of devices in every message.
  const pending = claim?.status?.phase === 'Pending' && /volume/i.test(message)
  return {
    isFinal: false,
    error: new SandboxError(
      pending ? 'workspace_unreachable' : 'host_full',
      pending
        ? `The volume of ${metadata.name} is not ready (${message}). Check the StorageClass and its provisioner.`
        : `No node of the cluster has room for this sandbox now (${message}). Stop one that is not needed, or add a node.`,
    ),
  }
}

/** The reason for a Pod that did not run within `ms`, and of which nothing else is known. */
export function startTooLong({ status, metadata, spec }: Pod, ms: number): SandboxError {
  const scheduled = status?.conditions?.some(
    ({ type, status: is }) => type === 'PodScheduled' && is === 'True',
  )
  const waits = statuses(status).some(({ state }) =>
    /^(?:ContainerCreating|PodInitializing)$/.test(state?.waiting?.reason ?? ''),
  )
  const look = `Look at its events: kubectl describe pod ${metadata.name}.`
  if (scheduled && waits)
    return new SandboxError(
      'workspace_unreachable',
      `The node ${spec.nodeName} did not prepare the volume or the image of this sandbox within ${ms / 1_000} s. ${look}`,
    )
  return new SandboxError(
    'engine_unavailable',
    `The Pod ${metadata.name} did not run within ${ms / 1_000} s. ${look}`,
  )
}

function statuses(status: Pod['status']): ContainerStatus[] {
  return [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
}

/** The end of this Pod’s sandbox, as an error for the commands in it; undefined while it runs. */
export function podEnd({ metadata, status }: Pod): SandboxError | undefined {
  const sbxd = status?.containerStatuses?.find(({ name }) => name === 'sbxd')?.state?.terminated
  const disruption = status?.conditions?.find(
    ({ type, status: is }) => type === 'DisruptionTarget' && is === 'True',
  )
  if (disruption !== undefined)
    return endOf(disruption.reason, disruption.message, metadata.name, undefined, undefined)
  if (metadata.deletionTimestamp !== undefined)
    return new SandboxError('sandbox_lost', 'The Pod of the sandbox was deleted. Its files are kept.')
  if (sbxd !== undefined || status?.phase === 'Failed' || status?.phase === 'Succeeded')
    return endOf(status?.reason, status?.message, metadata.name, 'sbxd', sbxd)
  return undefined
}

type Termination = NonNullable<ContainerStatus['state']>['terminated']

function endOf(
  reason = '',
  message = '',
  pod: string,
  container: string | undefined,
  end: Termination,
): SandboxError {
  const detail = [reason, message].filter(Boolean).join(': ')
  const lost = (text: string): SandboxError => new SandboxError('sandbox_lost', `${text} Its files are kept.`)
  // The runtime keeps that reason from a process that was killed earlier.
  if (end?.reason === 'OOMKilled' && end.exitCode === KILLED)
    return new SandboxError(
      'out_of_memory',
      'The sandbox used more memory than its limit, and the kernel ended all of it (a node with cgroup v2 does so unless singleProcessOOMKill is set). Its files are kept.',
    )
  if (/Evict/i.test(reason)) return lost(`The node evicted the sandbox (${detail}).`)
  if (reason === 'PreemptionByScheduler')
    return lost(`The sandbox had to make room for a Pod of higher priority (${detail}).`)
  if (reason === 'DeletionByTaintManager')
    return lost(`The sandbox was removed from a node that does not answer (${detail}).`)
  const code = end === undefined ? '' : `, exit code ${end.exitCode}`
  if (container === PREPARE)
    return new SandboxError(
      'engine_unavailable',
      `The Pod ${pod} could not take its network down and make the home${code}. See kubectl logs ${pod} --container ${PREPARE}; the sandbox image must be that of the agents’ version, or newer.`,
    )
  return lost(
    `The Pod ${pod} ended${container === undefined ? '' : ` in its container ${container}`}${code}${detail === '' ? '' : ` (${detail})`}.`,
  )
}
