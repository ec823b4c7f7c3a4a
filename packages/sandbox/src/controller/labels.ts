import type { SandboxProfile, SandboxSpec } from '../backend.ts'

/**
 * What a container or volume of ours carries. The engine is the truth about what exists, and these labels are how
 * it is read back. No user name and no secret goes into a label.
 */
export const LABEL = {
  deployment: 'sandlot.deployment',
  role: 'sandlot.role',
  slot: 'sandlot.slot',
  uid: 'sandlot.uid',
  volume: 'sandlot.volume',
  /** `BackendInventory.fingerprint` of the spec it was made from. */
  spec: 'sandlot.spec',
  schema: 'sandlot.schema',
  /** Only where it is not the default one. */
  profile: 'sandlot.profile',
} as const

/** Version of the labels themselves. */
export const LABEL_SCHEMA = '1'

/** The labels every container and volume of one slot carries. */
export function slotLabels(
  deployment: string,
  spec: Pick<SandboxSpec, 'slot' | 'uid' | 'volume'>,
): Record<string, string> {
  return {
    [LABEL.deployment]: deployment,
    [LABEL.role]: 'sandbox',
    [LABEL.slot]: spec.slot,
    [LABEL.uid]: String(spec.uid),
    [LABEL.volume]: spec.volume,
    [LABEL.schema]: LABEL_SCHEMA,
  }
}

/** The filter that a container was made with. */
export function profileOf({ labels }: { labels: Record<string, string> }): SandboxProfile {
  return labels[LABEL.profile] === 'debug' ? 'debug' : 'default'
}
