import { z } from 'zod'

import type { SandboxSpec } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import { LABEL } from '../../names.ts'
import { KEY, objectLabels, ownerOf, podName, readLabels, sandboxName } from './labels.ts'
import { fingerprint, type PodSettings } from './pod-template.ts'

interface ClaimInput {
  deployment: string
  spec: SandboxSpec
  settings: PodSettings
  /** Undefined: the cluster's default. */
  storageClass: string | undefined
}

/**
 * The claim of a slot: its home, and what is known of its sandbox while there is no Pod. It has no
 * owner reference, so nothing removes it but a person. Throws `invalid_arguments`.
 */
export function claimTemplate({ deployment, spec, settings, storageClass }: ClaimInput) {
  const print = fingerprint({ deployment, spec, settings })
  return {
    apiVersion: 'v1' as const,
    kind: 'PersistentVolumeClaim' as const,
    metadata: {
      name: spec.volume,
      namespace: settings.namespace,
      labels: objectLabels(deployment, spec, print),
      annotations: sandboxAnnotations(deployment, spec),
    },
    spec: {
      accessModes: ['ReadWriteOnce' as const],
      volumeMode: 'Filesystem' as const,
      storageClassName: storageClass,
      resources: { requests: { storage: String(spec.limits.diskBytes) } },
    },
  }
}

/** Annotations of the claim while its slot has a sandbox, running or stopped. */
export function sandboxAnnotations(deployment: string, spec: SandboxSpec): Record<string, string> {
  const { image, limits, runtime, profile } = spec
  return {
    [KEY.sandbox]: podName(deployment, spec.slot, ownerOf(deployment, spec)?.generation ?? 0),
    [KEY.template]: JSON.stringify({ image, limits, runtime, profile }),
  }
}

const template = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      context.addIssue('no JSON')
      return z.NEVER
    }
  })
  .pipe(
    // A later version may say more.
    z.object({
      image: z.string(),
      limits: z.object({
        memoryBytes: z.number(),
        cpus: z.number(),
        pids: z.number(),
        tmpBytes: z.number(),
        diskBytes: z.number(),
        diskEntries: z.number().optional(),
        openFiles: z.number(),
      }),
      runtime: z.string().optional(),
      profile: z.enum(['default', 'debug']).optional(),
    }),
  )

/**
 * Inverse of `claimTemplate`: the spec of the slot's sandbox; its template is checked when a Pod is
 * made of it. Throws `engine_unavailable` for an annotation that this version cannot read.
 */
export function readSpec(metadata: {
  name: string
  labels: Readonly<Record<string, string>>
  annotations: Readonly<Record<string, string>>
}): SandboxSpec {
  const labels = readLabels(metadata.labels)
  const { [LABEL.slot]: slot = '', [LABEL.volume]: volume, [LABEL.uid]: uid } = labels
  const read = template.safeParse(metadata.annotations[KEY.template])
  if (!read.success || metadata.name !== volume) {
    throw new SandboxError(
      'engine_unavailable',
      `The claim ${metadata.name} does not say from which template its sandbox was made. Its files stay.`,
    )
  }
  const { limits, runtime, profile, image } = read.data
  return {
    name: sandboxName(metadata.labels),
    slot,
    uid: Number(uid),
    volume,
    image,
    limits,
    runtime,
    profile,
    labels,
    hasWorkspace: true,
  }
}
