/**
 * Names and labels of a sandbox's Pod and claim. A label `sandlot.slot` of names.ts is
 * `sandlot.dev/slot` there; owner and generation, part of a container's name on Docker, are labels
 * as well.
 */
import type { SandboxOwner, SandboxSpec } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import { claimedName, LABEL, parseName, poolName, slotLabels } from '../../names.ts'

const PREFIX = 'sandlot.dev/'
const APP = { 'app.kubernetes.io/name': 'sandlot-sandbox' }

/** Keys without a counterpart in `LABEL`. */
export const KEY = {
  /** Label: `sandbox`, or `copy` of a Pod that copies a home. */
  role: `${PREFIX}role`,
  /** Label: tag of the owner. Absent in the pool. */
  owner: `${PREFIX}owner`,
  /** Label: number of the Pod among those of its slot; 0 in the pool. */
  generation: `${PREFIX}generation`,
  /** Annotation of a claim: the Pod of its sandbox. Absent where there is no sandbox. */
  sandbox: `${PREFIX}sandbox`,
  /** Annotation of a claim: JSON of the parts from which that Pod can be made again. */
  template: `${PREFIX}template`,
  /** Scheduling gate of a Pod that is created and not opened. */
  gate: `${PREFIX}open`,
} as const

/** Selector of every Pod, or every claim, of a deployment's sandboxes. */
export function selectorOf(deployment: string, role: 'sandbox' | 'copy' = 'sandbox'): string {
  return `${translated(LABEL.deployment)}=${deployment},${KEY.role}=${role}`
}

/** Name and id of a sandbox's Pod; `generation` is the one at its creation. */
export function podName(deployment: string, slot: string, generation: number): string {
  return `${poolName(deployment, slot)}-${generation}`
}

/** Owner that a spec's name states; undefined in the pool. Throws `invalid_arguments`. */
export function ownerOf(
  deployment: string,
  spec: Pick<SandboxSpec, 'name' | 'slot'>,
): SandboxOwner | undefined {
  const parsed = parseName(deployment, spec.name)
  if (parsed?.slot !== spec.slot)
    throw invalid(`A sandbox of the slot ${spec.slot} cannot have the name ${spec.name}.`)
  return parsed.kind === 'pool' ? undefined : { tag: parsed.owner, generation: parsed.generation }
}

/** Labels that a claim of the sandbox changes. */
export function ownerLabels(owner: SandboxOwner | undefined): Record<string, string> {
  if (owner === undefined) return { [KEY.generation]: '0' }
  return { [KEY.owner]: owner.tag, [KEY.generation]: String(owner.generation) }
}

/**
 * Labels of the Pod and the claim of a spec. Throws `invalid_arguments` for a value that Kubernetes
 * does not take.
 */
export function objectLabels(
  deployment: string,
  spec: SandboxSpec,
  fingerprint: string,
): Record<string, string> {
  const known: Record<string, string> = {
    ...spec.labels,
    ...slotLabels(deployment, spec),
    ...(spec.profile === 'debug' ? { [LABEL.profile]: spec.profile } : {}),
    [LABEL.spec]: fingerprint,
  }
  const { [LABEL.volume]: _isTheClaim, ...ours } = known
  const labels = {
    ...APP,
    ...Object.fromEntries(Object.entries(ours).map(([name, value]) => [translated(name), value])),
    ...ownerLabels(ownerOf(deployment, spec)),
  }
  for (const [name, value] of Object.entries(labels)) {
    if (!/^(?:[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?)?$/.test(value))
      throw invalid(`Kubernetes does not take “${value.slice(0, 80)}” as the label ${name}.`)
  }
  return labels
}

/** Inverse of `objectLabels`: our own labels, without those of other programs. */
export function readLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  const ours = Object.entries(labels).filter(
    ([key]) => key.startsWith(PREFIX) && key !== KEY.owner && key !== KEY.generation,
  )
  const read = Object.fromEntries(ours.map(([key, value]) => [`sandlot.${key.slice(PREFIX.length)}`, value]))
  const { [LABEL.deployment]: deployment = '', [LABEL.slot]: slot = '' } = read
  return { ...read, [LABEL.volume]: poolName(deployment, slot) }
}

/** Name of the sandbox with these labels, as names.ts makes it. */
export function sandboxName(labels: Readonly<Record<string, string>>): string {
  const { [LABEL.deployment]: deployment = '', [LABEL.slot]: slot = '' } = readLabels(labels)
  const owner = labels[KEY.owner]
  if (owner === undefined) return poolName(deployment, slot)
  return claimedName(deployment, slot, owner, Number(labels[KEY.generation]))
}

/** Our label as Kubernetes takes it. Throws `invalid_arguments` for another program's. */
function translated(label: string): string {
  const [, name] = /^sandlot\.([a-z]{1,32})$/.exec(label) ?? []
  if (name === undefined || name === 'owner' || name === 'generation')
    throw invalid(`A sandbox cannot have the label ${label.slice(0, 80)}.`)
  return PREFIX + name
}

function invalid(text: string): SandboxError {
  return new SandboxError('invalid_arguments', text)
}
