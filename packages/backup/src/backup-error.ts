/** Reason why a backup was not made or not restored. */
type BackupProblem =
  /** The file is not a backup. */
  | 'no_backup'
  /** Its end is missing. */
  | 'cut'
  /** A part of it was changed. */
  | 'damaged'
  /** It was made by an earlier version, without a signature. */
  | 'unauthenticated'
  /** It was made by a newer version. */
  | 'newer'
  | 'wrong_passphrase'
  | 'no_passphrase'
  /** The target already has data. */
  | 'not_empty'
  /** Sandlot is running, or another backup or restore. */
  | 'running'
  /** Sandlot stopped during the backup. */
  | 'stopped'
  /** There is nothing to back up. */
  | 'no_deployment'
  | 'no_space'
  /** It has database files and DATABASE_URL is set, or vice versa. */
  | 'other_database'
  /** The PostgreSQL server is older than that of the backup. */
  | 'older_server'
  /** A program of PostgreSQL is missing, or too old. */
  | 'no_program'
  /** A program or the engine failed. */
  | 'failed'

/** The message states the fact, `fix` the next step. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
  readonly code: BackupProblem
  readonly fix: string

  constructor(code: BackupProblem, message: string, fix: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.fix = fix
  }
}

/** Converts the error of a full disk; returns others unchanged. */
export function asBackupError(error: unknown, doing: string): unknown {
  if (error instanceof BackupError) return error
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const text = error instanceof Error ? error.message : String(error)
  if (code !== 'ENOSPC' && code !== 'full' && code !== 'SQLITE_FULL' && !/no space left/i.test(text))
    return error
  return new BackupError('no_space', `The disk is full, so ${doing}.`, 'Free space, or use another disk.', {
    cause: error,
  })
}
