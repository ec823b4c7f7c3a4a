/** Which images sandboxes are made from. */

/** The image that docker/sandbox makes: what a sandbox stands on. */
export const SANDBOX_IMAGE = 'sandlot/sandbox:latest'
/** Made `FROM` it by docker/sandbox-full, with the tools people ask an agent for. May be absent. */
const FULL_SANDBOX_IMAGE = 'sandlot/sandbox-full:latest'

export interface SandboxImages {
  image: string
  /** Used in its place while it is there, and made from what `image` is now. */
  extension?: string
}

/** `chosen`: the operator's own image, which is then the only one. */
export function sandboxImages(chosen?: string): SandboxImages {
  return chosen === undefined ? { image: SANDBOX_IMAGE, extension: FULL_SANDBOX_IMAGE } : { image: chosen }
}
