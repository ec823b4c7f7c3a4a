import { SandboxError } from '../errors.ts'

const PATH_BYTES = 4_096

/**
 * A path as a tool or person wrote it → relative to the workspace, `/`-separated, `''` for the workspace itself.
 * Throws `invalid_arguments` (NUL, half a surrogate, too long) or `path_outside` before anything is opened. This is
 * for clear messages; what confines is the kernel.
 */
export function workspacePath(workspace: string, path: string): string {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path
  if (path.includes('\0') || !path.isWellFormed())
    throw new SandboxError('invalid_arguments', 'The path contains characters that no path can have')
  if (Buffer.byteLength(path) > PATH_BYTES)
    throw new SandboxError('invalid_arguments', `The path is longer than ${PATH_BYTES} bytes`)
  const outside = (why: string): SandboxError =>
    new SandboxError('path_outside', `"${shown}" ${why}; use a path below ${workspace}`)
  if (/^~[^/]*\//.test(path) || path === '~') throw outside('is in a home directory')
  if (path.includes('\\')) throw outside('has backslashes')
  let relative = path
  if (path.startsWith('/')) {
    if (path !== workspace && !path.startsWith(`${workspace}/`)) throw outside('is outside the workspace')
    relative = path.slice(workspace.length)
  }
  const segments = relative.split('/').filter((segment) => segment !== '' && segment !== '.')
  if (segments.includes('..')) throw outside('goes upwards with ".."')
  return segments.join('/')
}
