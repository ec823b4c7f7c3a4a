/**
 * Why a sandbox could not do something. Closed list; the agent maps each once to a call's reason.
 */
export type SandboxErrorCode =
  /** The engine does not answer, refuses, or the image is missing. Trying again later may help. */
  | 'engine_unavailable'
  /** A sandbox of this machine does not hold what it promises; see `controller/proof.ts`. */
  | 'unsafe_host'
  /** The sandbox existed and went away. */
  | 'sandbox_lost'
  /** The volume of someone who had a sandbox is not there. A new one would hide that. */
  | 'workspace_missing'
  | 'invalid_arguments'
  | 'path_outside'
  /** A symbolic link stands on a path that must have none. */
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
  /** As many sandboxes run on this host as may, and all are in use. */
  | 'host_full'
  /** The host is short of disk, so nothing may grow. */
  | 'host_disk_low'
  /** The other side broke the protocol, or another controller took over. */
  | 'protocol'
  | 'fenced'
  /** The ledger of slots cannot be read or written. */
  | 'ledger'
  | 'cancelled'
  | 'timeout'

/** Of a volume that held a person's files. Trying again does not help. */
export function workspaceMissing(volume: string): SandboxError {
  return new SandboxError(
    'workspace_missing',
    `The volume ${volume} with the files of this workspace is missing, so nothing was started. Restore it from a backup, or let an administrator reset the sandbox, which then begins empty.`,
  )
}

/**
 * Every failure of this package. `message` is safe to show to a person and ends with what to do
 * where that is known.
 */
export class SandboxError extends Error {
  override readonly name = 'SandboxError'
  readonly code: SandboxErrorCode
  /** The connection to the engine could not be made or broke: it may be there again in a moment. */
  readonly unreachable: boolean

  constructor(code: SandboxErrorCode, message: string, options?: ErrorOptions & { unreachable?: boolean }) {
    super(message, options)
    this.code = code
    this.unreachable = options?.unreachable ?? false
  }
}
