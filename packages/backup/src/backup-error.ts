/** Why a backup was not made or not restored. */
type BackupProblem =
  /** The file is no backup at all. */
  | 'no_backup'
  /** Its end is missing. */
  | 'cut'
  /** A part of it is not what was written. */
  | 'damaged'
  /** An earlier version made it, which did not sign its manifest. */
  | 'unauthenticated'
  /** It was made by a newer version. */
  | 'newer'
  | 'wrong_passphrase'
  | 'no_passphrase'
  /** There is something where it should be restored. */
  | 'not_empty'
  /** Sandlot runs, or another backup or restore. */
  | 'running'
  /** There is nothing to back up. */
  | 'no_deployment'
  | 'no_space'
  /** It is of files and DATABASE_URL is set, or the other way round. */
  | 'other_database'
  /** PostgreSQL here is older than that of the backup. */
  | 'older_server'
  /** A program of PostgreSQL is missing, or too old. */
  | 'no_program'
  /** A program or the engine refused. */
  | 'failed'

/** What happened, in a sentence, and in `fix` what to do. */
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

/** As a `BackupError`, where it is a full disk. */
export function asBackupError(error: unknown, doing: string): unknown {
  if (error instanceof BackupError) return error
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const text = error instanceof Error ? error.message : String(error)
  if (code !== 'ENOSPC' && code !== 'full' && code !== 'SQLITE_FULL' && !/no space left/i.test(text))
    return error
  return new BackupError('no_space', `The disk is full, so ${doing}.`, 'Make room, or use another disk.', {
    cause: error,
  })
}
