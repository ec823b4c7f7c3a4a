/** Images of sandboxes. */

/** Base image, built by docker/sandbox. */
export const SANDBOX_IMAGE = 'sandlot/sandbox:latest'
/**
 * Built `FROM` it by docker/sandbox-full, with tools that users request of an agent. May be absent.
 */
const FULL_SANDBOX_IMAGE = 'sandlot/sandbox-full:latest'

export interface SandboxImages {
  image: string
  /** Replaces `image` while it exists and is built from the current one. */
  extension?: string
}

/** `chosen`: the operator's own image, without an extension. */
export function sandboxImages(chosen?: string): SandboxImages {
  return chosen === undefined ? { image: SANDBOX_IMAGE, extension: FULL_SANDBOX_IMAGE } : { image: chosen }
}
