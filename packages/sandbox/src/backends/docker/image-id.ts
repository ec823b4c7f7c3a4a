/** An image's name → the engine's id of what a container made now would run. */
import type Docker from 'dockerode'
import { absentIf404 } from './answers.ts'
import { DEADLINE, type Engine } from './engine.ts'
import { missingImage } from './engine-error.ts'

/**
 * `extensions`: image → one that was made from it and is used in its place. It is passed over while it is absent, and
 * after the image was made anew without it: then another sbxd may be in it.
 */
export function createImageIds(
  engine: Engine,
  extensions: Readonly<Record<string, string>>,
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
    return extended !== undefined && isMadeFrom(extended, image) ? extended.Id : image.Id
  }
}

/** Its layers begin with those of `image`, whatever either is called. */
function isMadeFrom(extended: Docker.ImageInspectInfo, image: Docker.ImageInspectInfo): boolean {
  const [own = [], base = []] = [extended.RootFS.Layers, image.RootFS.Layers]
  return base.length > 0 && base.every((layer, at) => own[at] === layer)
}
