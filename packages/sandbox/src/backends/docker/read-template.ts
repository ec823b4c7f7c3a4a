import { z } from 'zod'

import type { SandboxLimits } from '../../backend.ts'
import { LABEL } from '../../names.ts'

/** Variable parts of a create body. */
interface TemplateParts {
  slot: string
  uid: number
  volume: string
  imageId: string
  fingerprint: string
  /** Text of the filter, if any. */
  seccompProfile: string | undefined
  /** Labels of the spec, without our own. */
  labels: Record<string, string>
  limits: SandboxLimits
}

const body = z.looseObject({
  Image: z.string(),
  User: z.string().regex(/^\d{1,10}:\d{1,10}$/),
  Labels: z.record(z.string(), z.string()),
  HostConfig: z.looseObject({
    SecurityOpt: z.array(z.string()),
    Mounts: z.array(z.looseObject({ Source: z.string() })).length(1),
    Tmpfs: z.record(z.string(), z.string()),
    Memory: z.number(),
    NanoCpus: z.number(),
    PidsLimit: z.number(),
    Ulimits: z.array(z.looseObject({ Name: z.string(), Soft: z.number() })),
  }),
})

const FILTER = 'seccomp='
const OWN: ReadonlySet<string> = new Set(Object.values(LABEL))

/**
 * Inverse of `createTemplate`: reads the parts that determine a received body. It does not check
 * the rest: fill in the template with these parts and compare. Undefined when a part is missing.
 */
export function readTemplate(value: unknown): TemplateParts | undefined {
  const parsed = body.safeParse(value)
  if (!parsed.success) return undefined
  const { Image, User, Labels, HostConfig } = parsed.data
  const [mount] = HostConfig.Mounts
  const slot = Labels[LABEL.slot]
  const fingerprint = Labels[LABEL.spec]
  const tmpBytes = /(?:^|,)size=(\d+)(?:,|$)/.exec(HostConfig.Tmpfs['/tmp'] ?? '')?.[1]
  const soft = (name: string): number | undefined =>
    HostConfig.Ulimits.find(({ Name }) => Name === name)?.Soft
  const openFiles = soft('nofile')
  const diskBytes = soft('fsize')
  if (
    mount === undefined ||
    slot === undefined ||
    fingerprint === undefined ||
    tmpBytes === undefined ||
    openFiles === undefined ||
    diskBytes === undefined
  ) {
    return undefined
  }
  return {
    slot,
    uid: Number(User.split(':')[0]),
    volume: mount.Source,
    imageId: Image,
    fingerprint,
    seccompProfile: HostConfig.SecurityOpt.find((option) => option.startsWith(FILTER))?.slice(FILTER.length),
    labels: Object.fromEntries(Object.entries(Labels).filter(([name]) => !OWN.has(name))),
    limits: {
      memoryBytes: HostConfig.Memory,
      cpus: HostConfig.NanoCpus / 1e9,
      pids: HostConfig.PidsLimit,
      tmpBytes: Number(tmpBytes),
      diskBytes,
      openFiles,
    },
  }
}
