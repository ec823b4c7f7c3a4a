/** Failure codes. Closed list; the agent maps each once to a call's reason. */
export type SandboxErrorCode =
  /** The engine does not answer, refuses, or lacks the image. A later retry may help. */
  | 'engine_unavailable'
  /** A sandbox of this machine failed its isolation proof; see `controller/proof.ts`. */
  | 'unsafe_host'
  /** The sandbox existed and was removed or ended. */
  | 'sandbox_lost'
  /** The sandbox used more memory than it may, and the kernel ended all of it. */
  | 'out_of_memory'
  /** The volume of a user with a sandbox is missing. A new one would hide that. */
  | 'workspace_missing'
  /**
   * The volume of a user exists and is out of reach for now: its machine does not answer, or it
   * cannot be attached. A later retry may help; an empty one in its place would hide the files.
   */
  | 'workspace_unreachable'
  | 'invalid_arguments'
  | 'path_outside'
  /** A symbolic link is on a path that must have none. */
  | 'path_changed'
  | 'not_found'
  | 'not_regular'
  | 'exists'
  | 'permission'
  | 'pids_exhausted'
  | 'disk_quota'
  | 'too_large'
  | 'start_failed'
  | 'limit_reached'
  /** The host runs its maximum of sandboxes, all in use. */
  | 'host_full'
  /** The host is short of disk, so nothing may grow. */
  | 'host_disk_low'
  /** sbxd broke the protocol, or another controller took over. */
  | 'protocol'
  | 'fenced'
  /** The ledger of slots cannot be read or written. */
  | 'ledger'
  | 'cancelled'
  | 'timeout'

/** For a volume that held a user's files. A retry does not help. */
export function workspaceMissing(volume: string): SandboxError {
  return new SandboxError(
    'workspace_missing',
    `The volume ${volume} with the files of this workspace is missing, so nothing was started. Restore it from a backup, or let an administrator reset the sandbox, which then begins empty.`,
  )
}

/**
 * Every failure of this package. `message` is safe to show to a user and ends with the remedy, if
 * known.
 */
export class SandboxError extends Error {
  override readonly name = 'SandboxError'
  readonly code: SandboxErrorCode
  /** The connection to the engine failed or broke: it may be back in a moment. */
  readonly unreachable: boolean

  constructor(code: SandboxErrorCode, message: string, options?: ErrorOptions & { unreachable?: boolean }) {
    super(message, options)
    this.code = code
    this.unreachable = options?.unreachable ?? false
  }
}
