import { createHash } from 'node:crypto'

import type Docker from 'dockerode'

import type { SandboxSpec } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import { type EngineInfo, readInfo, unlimited } from './capabilities.ts'
import { type CreateBody, createTemplate, engineFacts } from './create-template.ts'
import { debugProfile } from './debug-profile.ts'
import { DEADLINE, type Engine } from './engine.ts'
import { once } from './once.ts'
import { readSeccompProfile } from './seccomp.ts'
import { absentIf404, missingImage } from './engine-error.ts'

/** What a spec comes to on this engine now. */
interface BuiltSpec {
  body: CreateBody
  /** Of everything in the body but the labels. */
  fingerprint: string
}

/**
 * Makes blueprints: finds the image's id, reads the profile and the engine's facts once, fills in
 * the template.
 */
export function createSpecBuilder(
  engine: Engine,
  deployment: string,
  imageIdOf: ReturnType<typeof createImageIds>,
  seccompFile?: string,
): (spec: SandboxSpec, signal?: AbortSignal) => Promise<BuiltSpec> {
  const profile = once(() => readSeccompProfile(seccompFile))
  const facts = once(async () => {
    const info = await readInfo(engine)
    requireLimits(info)
    return engineFacts(info)
  })

  return async (spec, signal) => {
    const [ordinary, engineNow, imageId] = await Promise.all([
      profile(),
      facts(),
      imageIdOf(spec.image, signal),
    ])
    const input = {
      deployment,
      spec,
      imageId,
      seccompProfile: spec.profile === 'debug' ? debugProfile(ordinary) : ordinary,
      engine: engineNow,
    }
    const { Labels: _perContainer, ...rest } = createTemplate({ ...input, fingerprint: '' })
    const fingerprint = createHash('sha256').update(JSON.stringify(rest)).digest('hex').slice(0, 32)
    return { body: createTemplate({ ...input, fingerprint }), fingerprint }
  }
}

/**
 * Throws `unsafe_host` where one sandbox could take all of the host: rootless on cgroup v1, or a
 * kernel without them.
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
 * `extensions`: image → one that was made from it and is used in its place. It is passed over while
 * it is absent, and after the image was made anew without it: then another sbxd may be in it.
 * `names` gets the name of each image that was found, by its id.
 */
export function createImageIds(
  engine: Engine,
  extensions: Readonly<Record<string, string>>,
  names: Map<string, string>,
): (reference: string, signal?: AbortSignal) => Promise<string> {
  const look = (reference: string, signal?: AbortSignal): Promise<Docker.ImageInspectInfo | undefined> =>
    engine.call(
      'look for the sandbox image',
      DEADLINE.read,
      (docker) => absentIf404(docker.getImage(reference).inspect()),
      signal,
    )
  return async (reference, signal) => {
    const extension = extensions[reference]
    const [image, extended] = await Promise.all([
      look(reference, signal),
      extension === undefined ? undefined : look(extension, signal),
    ])
    if (image === undefined) throw missingImage(reference)
    names.set(image.Id, reference)
    if (extension !== undefined && extended !== undefined) names.set(extended.Id, extension)
    return extended !== undefined && isMadeFrom(extended, image) ? extended.Id : image.Id
  }
}

/** Its layers begin with those of `image`, whatever either is called. */
function isMadeFrom(extended: Docker.ImageInspectInfo, image: Docker.ImageInspectInfo): boolean {
  const [own = [], base = []] = [extended.RootFS.Layers, image.RootFS.Layers]
  return base.length > 0 && base.every((layer, at) => own[at] === layer)
}
