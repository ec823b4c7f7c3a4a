/** Names and labels of containers and volumes. */
import { createHmac, randomInt } from 'node:crypto'

import type { SandboxProfile, SandboxSpec } from './backend.ts'

const SLOT_LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** Uids of slots. The image has a passwd line for each. */
export const UID_RANGE = { first: 30_000, last: 59_999 } as const

/** A new slot name, `[a-z0-9]{8}`. */
export function newSlotName(): string {
  return Array.from({ length: 8 }, () => SLOT_LETTERS[randomInt(SLOT_LETTERS.length)]).join('')
}

/**
 * 16 hex digits of HMAC-SHA256(deployment key, user id), for container names: a list of containers
 * does not reveal the user, and with the key a user's container is found without a ledger.
 */
export function ownerTag(deploymentKey: Uint8Array, userId: string): string {
  return createHmac('sha256', deploymentKey)
    .update('sandlot owner\0')
    .update(userId)
    .digest('hex')
    .slice(0, 16)
}

/** `sbx-<deployment>-<slot>`: a slot's volume, and its container's name in the pool. */
export function poolName(deployment: string, slot: string): string {
  return `sbx-${deployment}-${slot}`
}

/**
 * `sbx-<deployment>-<slot>-<owner>-<n>`: the ledger assigns n, so no two containers of a slot share
 * a name.
 */
export function claimedName(deployment: string, slot: string, owner: string, generation: number): string {
  return `${poolName(deployment, slot)}-${owner}-${generation}`
}

type SandboxName =
  | { kind: 'pool'; slot: string }
  | { kind: 'claimed'; slot: string; owner: string; generation: number }

/** Parses a container name of this deployment; undefined when it is not one of ours. */
export function parseName(deployment: string, name: string): SandboxName | undefined {
  const prefix = `sbx-${deployment}-`
  if (!name.startsWith(prefix)) return undefined
  const match = /^([a-z0-9]{8})(?:-([0-9a-f]{16})-([1-9][0-9]{0,9}))?$/.exec(name.slice(prefix.length))
  if (!match?.[1]) return undefined
  if (!match[2] || !match[3]) return { kind: 'pool', slot: match[1] }
  return { kind: 'claimed', slot: match[1], owner: match[2], generation: Number(match[3]) }
}

/** A random free uid; undefined when all are taken. */
export function freeUid(taken: ReadonlySet<number>): number | undefined {
  const size = UID_RANGE.last - UID_RANGE.first + 1
  const start = randomInt(size)
  for (let step = 0; step < size; step += 1) {
    const uid = UID_RANGE.first + ((start + step) % size)
    if (!taken.has(uid)) return uid
  }
  return undefined
}

/** A deployment id becomes part of container and volume names. */
export function isDeploymentId(text: string): boolean {
  return /^[a-z0-9][a-z0-9-]{0,39}$/.test(text)
}

/**
 * Labels of our containers and volumes. The engine is the truth about what exists, and these labels
 * are how it is read back. They hold no user name and no secret.
 */
export const LABEL = {
  deployment: 'sandlot.deployment',
  role: 'sandlot.role',
  slot: 'sandlot.slot',
  uid: 'sandlot.uid',
  volume: 'sandlot.volume',
  /** `BackendInventory.fingerprint` of its spec. */
  spec: 'sandlot.spec',
  schema: 'sandlot.schema',
  /** Absent for the default one. */
  profile: 'sandlot.profile',
} as const

/** Version of the labels themselves. */
const LABEL_SCHEMA = '1'

/** Labels of every container and volume of one slot. */
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

/** System call filter of a container. */
export function profileOf({ labels }: { labels: Record<string, string> }): SandboxProfile {
  return labels[LABEL.profile] === 'debug' ? 'debug' : 'default'
}
