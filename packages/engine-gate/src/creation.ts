/**
 * Allowed creations: the one container template and the one kind of volume, rebuilt from checked
 * parts.
 */
import { z } from 'zod'

import type { SandboxLimits, SandboxSpec } from '@sandlot/sandbox/backend'
import {
  createTemplate,
  type CreateBody,
  type EngineFacts,
} from '@sandlot/sandbox/backends/docker/create-template'
import { readTemplate } from '@sandlot/sandbox/backends/docker/read-template'
import { LABEL, parseName, poolName, slotLabels, UID_RANGE } from '@sandlot/sandbox/names'
import { firstDifference, parseCanonical } from './canonical-json.ts'
import { forbidden } from './refusal.ts'

/** Operator's settings and facts of the engine; nothing here comes from a client. */
interface Policy {
  deployment: string
  /** The engine's current ids of the configured images. */
  imageIds: readonly string[]
  /** Undefined: the engine's default. */
  runtime: string | undefined
  seccompProfile: string
  /** Text of the debug profile, if the operator grants it: the only alternative profile. */
  debugProfile?: string | undefined
  /** Upper limits of a sandbox. */
  limits: SandboxLimits
  engine: EngineFacts
}

interface Creation {
  body: CreateBody
  volume: string
  uid: number
  slot: string
}

/**
 * Checks the body of a create. The returned body is rebuilt from parts that were each checked; the
 * engine receives it instead of the client's text. @throws Refusal 403 that names the first field
 * that differs from the template.
 */
export function checkCreate(name: string | undefined, text: string, policy: Policy): Creation {
  const asked = parseCanonical(text)
  const parts = readTemplate(asked)
  if (parts === undefined) throw forbidden('the body is not the sandbox template')
  const { deployment } = policy
  const imageId = policy.imageIds.find((id) => id === parts.imageId)
  if (imageId === undefined) throw forbidden('the image is not a configured one')
  if (parseName(deployment, name ?? '')?.slot !== parts.slot)
    throw forbidden(
      `a container of the slot ${parts.slot.slice(0, 40)} may not be called ${name ?? 'nothing'}`,
    )
  const { slot, uid, fingerprint, limits, labels } = parts
  // Limits enforced by sbxd instead of the engine are not in the body, and not checked here.
  for (const [limit, value] of Object.entries(limits) as [keyof SandboxLimits, number][]) {
    const most = policy.limits[limit] ?? 0
    if (!(value <= most)) throw forbidden(`${limit} is ${value}; at most ${most} is configured`)
  }
  if (!/^[0-9a-f]{1,64}$/.test(fingerprint)) throw forbidden(`the label ${LABEL.spec} is not a fingerprint`)
  // Labels of other programs have effects there: a compose project, a proxy's routes.
  const strange = Object.entries(labels).find(
    ([label, value]) => !/^sandlot\.[a-z]{1,32}$/.test(label) || !/^[\w.:-]{0,128}$/.test(value),
  )
  if (strange !== undefined) throw forbidden(`the label ${strange[0].slice(0, 120)} is not one of ours`)
  const volume = poolName(deployment, slot)
  const debug = parts.seccompProfile === policy.debugProfile ? policy.debugProfile : undefined
  const body = fillIn({
    ...policy,
    seccompProfile: debug ?? policy.seccompProfile,
    spec: { slot, uid, volume, limits, labels, ...(debug === undefined ? {} : { profile: 'debug' }) },
    imageId,
    fingerprint,
    name: name ?? '',
  })
  const difference = firstDifference(withOurLabels(asked, deployment), body)
  if (difference !== undefined)
    throw forbidden(`${difference.slice(0, 200)} is not as in the sandbox template`)
  return { body, volume, uid, slot }
}

function fillIn(
  given: Omit<Policy, 'imageIds'> & {
    imageId: string
    name: string
    fingerprint: string
    spec: Omit<SandboxSpec, 'name' | 'image' | 'runtime'>
  },
): CreateBody {
  const { deployment, imageId, seccompProfile, engine, runtime, fingerprint, name } = given
  try {
    return createTemplate({
      deployment,
      imageId,
      seccompProfile,
      engine,
      fingerprint,
      spec: {
        ...given.spec,
        name,
        image: imageId,
        runtime,
      },
    })
  } catch (error) {
    throw forbidden(error instanceof Error ? error.message : 'the template cannot be filled in')
  }
}

/** These two labels are always ours: a client never decides a container's owner. */
function withOurLabels(value: unknown, deployment: string): unknown {
  // The spread keeps an own key `__proto__`, which is then found as superfluous.
  const { Labels, ...rest } = value as { Labels: Record<string, string> }
  return { ...rest, Labels: { ...Labels, [LABEL.deployment]: deployment, [LABEL.role]: 'sandbox' } }
}

const volumeBody = z.strictObject({
  Name: z.string(),
  Driver: z.literal('local'),
  // A project quota on xfs, not a mount.
  DriverOpts: z.strictObject({ size: z.string().regex(/^[1-9][0-9]{0,15}$/) }).optional(),
  Labels: z.record(z.string(), z.string()),
})

/** Checks the body of a volume's create; returns the one to send. @throws Refusal 403 */
export function checkVolume(text: string, deployment: string): z.infer<typeof volumeBody> {
  // A driver option is a mount: `type=none,o=bind,device=/` is the host's root.
  const parsed = volumeBody.safeParse(parseCanonical(text))
  if (!parsed.success)
    throw forbidden('a volume has a name, the driver local, labels and a size, nothing else')
  const { Name, Labels, DriverOpts } = parsed.data
  const name = parseName(deployment, Name)
  const uid = Number(Labels[LABEL.uid])
  if (name?.kind !== 'pool')
    throw forbidden(`the volume ${Name.slice(0, 120)} is not one of this deployment's`)
  if (!(Number.isInteger(uid) && uid >= UID_RANGE.first && uid <= UID_RANGE.last))
    throw forbidden('the volume has no uid of the range')
  const own = slotLabels(deployment, { slot: name.slot, uid, volume: Name })
  const asked = { ...Labels, [LABEL.deployment]: deployment, [LABEL.role]: 'sandbox' }
  const difference = firstDifference(asked, own)
  if (difference !== undefined) throw forbidden(`the volume's label ${difference.slice(1, 120)} is not ours`)
  return { Name, Driver: 'local', DriverOpts, Labels: own }
}
