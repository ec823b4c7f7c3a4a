import { SandboxError, type SandboxErrorCode } from '../errors.ts'

const E = {
  PERM: 1,
  NOENT: 2,
  TOOBIG: 7,
  AGAIN: 11,
  NOMEM: 12,
  ACCES: 13,
  EXIST: 17,
  NOTDIR: 20,
  NFILE: 23,
  MFILE: 24,
  NOSPC: 28,
  NOEXEC: 8,
  NOSYS: 38,
  LOOP: 40,
  USERS: 87,
} as const

/** Linux errno numbers that sbxd answers with, the same on x86-64 and arm64. */
const FILE_ERRORS: Record<number, [SandboxErrorCode, string]> = {
  1: ['permission', 'is not permitted'],
  2: ['not_found', 'does not exist'],
  5: ['permission', 'cannot be read or written: the disk reports an error'],
  6: ['not_regular', 'is not a regular file'],
  7: ['too_large', 'has too many files'],
  11: ['limit_reached', 'changes too fast, try again'],
  12: ['limit_reached', 'needs more memory than there is'],
  13: ['permission', 'is not permitted'],
  16: ['limit_reached', 'is busy: too many requests at once'],
  17: ['exists', 'exists already'],
  18: ['path_outside', 'leads out of the workspace'],
  20: ['not_regular', 'leads through something that is not a directory'],
  21: ['not_regular', 'is a directory'],
  22: ['invalid_arguments', 'is not a usable path'],
  23: ['limit_reached', 'needs more open files than there may be'],
  24: ['limit_reached', 'needs more open files than there may be'],
  26: ['permission', 'is being executed'],
  27: ['disk_quota', 'would be larger than a file may be here'],
  28: ['disk_quota', 'does not fit: the disk is full; delete what is not needed'],
  30: ['permission', 'is read-only'],
  36: ['invalid_arguments', 'is too long for a path'],
  38: ['limit_reached', 'cannot be watched here'],
  39: ['exists', 'is a directory that is not empty; remove it with recursive'],
  40: ['path_outside', 'leads through too many symbolic links'],
  62: ['timeout', 'takes too long to scan'],
  122: ['disk_quota', 'does not fit: the disk quota is used up; delete what is not needed'],
}

/** `noLinks`: the request was made for a path without symbolic links. */
export function fileError(errno: number, path: string, noLinks = false): SandboxError {
  if (noLinks && errno === E.LOOP)
    return new SandboxError(
      'path_changed',
      `"${path}" leads through a symbolic link that was created in the meantime; try again`,
    )
  const [code, words] = FILE_ERRORS[errno] ?? (['permission', `failed with error ${errno}`] as const)
  return new SandboxError(code, `${path === '' ? 'The workspace' : `"${path}"`} ${words}`)
}

const STAGE = { request: 1, boot: 2, limit: 3, fork: 4, setup: 5, cwd: 6, exec: 7, attach: 8 } as const

/** The error of a START or ATTACH. The command never ran. */
export function startError(
  errno: number,
  stage: number,
  request: { program: string; cwd?: string | undefined },
): SandboxError {
  if (stage === STAGE.boot)
    return new SandboxError(
      'sandbox_lost',
      'The sandbox was restarted since this command was prepared; it did not run',
    )
  if (stage === STAGE.limit && errno === E.USERS)
    return new SandboxError(
      'limit_reached',
      'As many background jobs run as may; end one, or wait for one to end',
    )
  if (stage === STAGE.limit)
    return new SandboxError(
      'limit_reached',
      'Too many commands run or wait to be acknowledged; wait for some to end',
    )
  if (errno === E.TOOBIG)
    return new SandboxError(
      'invalid_arguments',
      'The command and its environment are too long for the system; put long text into a file',
    )
  if (stage === STAGE.request && errno === E.PERM)
    return new SandboxError('invalid_arguments', "A limit of the command is above the sandbox's own")
  if (stage === STAGE.request && errno === E.EXIST)
    return new SandboxError('start_failed', 'Another command runs under this id; make the call again')
  if (stage === STAGE.request)
    return new SandboxError(
      'invalid_arguments',
      'The sandbox does not accept this command: check for NUL bytes and for names of environment variables',
    )
  if (stage === STAGE.attach)
    return new SandboxError('invalid_arguments', 'The command has not produced that much output')
  if (stage === STAGE.cwd) return cwdError(errno, request.cwd ?? '')
  if (errno === E.NOSYS)
    return new SandboxError('start_failed', 'This sandbox has no library for sessions; rebuild its image')
  if (errno === E.AGAIN)
    return new SandboxError(
      'pids_exhausted',
      'The sandbox has no room for another process; reset it to end all of them',
    )
  if (errno === E.NOMEM || errno === E.NFILE || errno === E.MFILE || errno === E.NOSPC)
    return new SandboxError('limit_reached', 'The sandbox has no memory or descriptors for another command')
  if (errno === E.NOENT) return new SandboxError('start_failed', `"${request.program}" was not found`)
  if (errno === E.ACCES || errno === E.NOEXEC)
    return new SandboxError('start_failed', `"${request.program}" cannot be executed`)
  return new SandboxError('start_failed', `"${request.program}" could not be started (error ${errno})`)
}

function cwdError(errno: number, cwd: string): SandboxError {
  const words = errno === 2 ? 'does not exist' : errno === 20 ? 'is not a directory' : 'cannot be entered'
  return new SandboxError(errno === 13 ? 'permission' : 'not_found', `The directory "${cwd}" ${words}`)
}
