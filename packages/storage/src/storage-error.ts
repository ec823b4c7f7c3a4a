/**
 * Why a database cannot be used. `SandlotError` is for what a caller of a store did wrong; this is
 * for operators.
 */
export type StorageErrorCode =
  /** The file cannot be opened or is no database. */
  | 'cannot_open'
  /** Another process holds the lock. */
  | 'locked'
  /** There is no space left where the database is. */
  | 'full'
  /** The disk, or what it is on, refused a read or a write. */
  | 'io'
  /** No connection to the server of the database could be had, or it ended one. */
  | 'unreachable'
  /** A newer Sandlot has migrated this file. */
  | 'newer_schema'
  /** A reader waited for the writer to make or migrate the file, and it did not. */
  | 'not_migrated'
  | 'migration_failed'
  /** There is a Sandlot where another one should be brought. */
  | 'not_empty'
  /** What was begun with other files. */
  | 'other_source'
  /** Another agent that lives keeps people's files on another engine. */
  | 'other_engine'
  /** Another agent has taken the session over: stop working on it. */
  | 'not_owner'
  /** A stored value does not have the shape that it was stored with. */
  | 'corrupt'

/**
 * Every failure of a database as a whole. `message` names the file and ends with what to do where
 * that is known.
 */
export class StorageError extends Error {
  override readonly name = 'StorageError'
  readonly code: StorageErrorCode

  constructor(code: StorageErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Another agent writes this session now. */
export function notOwner(sessionId: string): StorageError {
  return new StorageError(
    'not_owner',
    `Another agent has taken over session ${sessionId}; this one has stopped working on it.`,
  )
}

/** The database as a whole does not work now: what failed may succeed later as it is. */
export function isOutage(error: unknown): boolean {
  return error instanceof StorageError && (error.code === 'io' || error.code === 'unreachable')
}

/** Codes of PostgreSQL (data, integrity, limits, a trigger), of SQLite, and of Node. */
const REFUSED = /^((22|23|44|54|P0)[0-9A-Z]{3}|SQLITE_(CONSTRAINT|TOOBIG|MISMATCH).*|ERR_STRING_TOO_LONG)$/

/** The database works and refuses this value, now and later. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof StorageError) return false
  // V8's own, of JSON that is longer than a text may be.
  if (error.message === 'Invalid string length') return true
  // A store throws some of them as the cause of a typed error.
  return (
    ('code' in error && typeof error.code === 'string' && REFUSED.test(error.code)) || isRefusal(error.cause)
  )
}

export function isNotOwner(error: unknown): boolean {
  return error instanceof StorageError && error.code === 'not_owner'
}
