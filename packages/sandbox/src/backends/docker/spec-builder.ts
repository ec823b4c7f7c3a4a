import { createHash } from 'node:crypto'

import type Docker from 'dockerode'

import type { SandboxSpec } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import { type EngineInfo, readInfo, unlimited } from './capabilities.ts'
import { type CreateBody, createTemplate, engineFacts } from './create-template.ts'
import { DEADLINE, type Engine } from './engine.ts'
import { once } from './once.ts'
import { readSeccompProfile } from './seccomp.ts'
import { absentIf404, missingImage } from './engine-error.ts'

/** A spec resolved on this engine. */
interface BuiltSpec {
  body: CreateBody
  /** Hash of the body without labels. */
  fingerprint: string
}

/**
 * Resolves specs: finds the image's id, reads the profile and the engine's facts once, fills in the
 * template.
 */
export function createSpecBuilder(
  engine: Engine,
  deployment: string,
  imageIdOf: ReturnType<typeof createImageIds>,
  seccompFile?: string,
): (spec: SandboxSpec, signal?: AbortSignal) => Promise<BuiltSpec> {
  const profiles = {
    default: once(() => readSeccompProfile('default', seccompFile)),
    debug: once(() => readSeccompProfile('debug', seccompFile)),
  }
  const facts = once(async () => {
    const info = await readInfo(engine)
    requireLimits(info)
    return engineFacts(info)
  })

  return async (spec, signal) => {
    const [seccompProfile, engineNow, imageId] = await Promise.all([
      profiles[spec.profile ?? 'default'](),
      facts(),
      imageIdOf(spec.image, signal),
    ])
    const input = {
      deployment,
      spec,
      imageId,
      seccompProfile,
      engine: engineNow,
    }
    const { Labels: _perContainer, ...rest } = createTemplate({ ...input, fingerprint: '' })
    const fingerprint = createHash('sha256').update(JSON.stringify(rest)).digest('hex').slice(0, 32)
    return { body: createTemplate({ ...input, fingerprint }), fingerprint }
  }
}

/**
 * Throws `unsafe_host` where one sandbox could take the whole host: rootless on cgroup v1, or a
 * kernel without the controllers.
 */
function requireLimits(info: EngineInfo): void {
  const missing = unlimited(info)
  if (missing.length === 0) return
  throw new SandboxError(
    'unsafe_host',
    `The Docker engine enforces no limits of ${missing.join(', ')} here, so no sandbox is made. Turn the cgroup controllers on (kernel command line: cgroup_enable=memory), or, where the engine is rootless, use cgroup v2 and delegate them to its user.`,
  )
}

/**
 * `extensions`: image → one that was made from it and replaces it. An extension is ignored while it
 * is absent, and after the image was rebuilt without it: it may then hold another sbxd. `names`
 * receives the name of each image found, by its id.
 */
export function createImageIds(
  engine: Engine,
  extensions: Readonly<Record<string, string>>,
  names: Map<string, string>,
): (reference: string, signal?: AbortSignal) => Promise<string> {
  const findImage = (reference: string, signal?: AbortSignal): Promise<Docker.ImageInspectInfo | undefined> =>
    engine.call(
      'find the sandbox image',
      DEADLINE.read,
      (docker) => absentIf404(docker.getImage(reference).inspect()),
      signal,
    )
  return async (reference, signal) => {
    const extension = extensions[reference]
    const [image, extended] = await Promise.all([
      findImage(reference, signal),
      extension === undefined ? undefined : findImage(extension, signal),
    ])
    if (image === undefined) throw missingImage(reference)
    names.set(image.Id, reference)
    if (extension !== undefined && extended !== undefined) names.set(extended.Id, extension)
    return extended !== undefined && isMadeFrom(extended, image) ? extended.Id : image.Id
  }
}

/** Compares layers, not names: its layers begin with those of `image`. */
function isMadeFrom(extended: Docker.ImageInspectInfo, image: Docker.ImageInspectInfo): boolean {
  const [own = [], base = []] = [extended.RootFS.Layers, image.RootFS.Layers]
  return base.length > 0 && base.every((layer, at) => own[at] === layer)
}
