/**
 * Reasons that a database is unusable, for operators. `SandlotError` is for mistakes of a store's
 * caller.
 */
export type StorageErrorCode =
  /** The file cannot be opened or is no database. */
  | 'cannot_open'
  /** Another process holds the lock. */
  | 'locked'
  /** The database's disk is full. */
  | 'full'
  /** The disk, or its device, refused a read or a write. */
  | 'io'
  /** No connection to the database's server, or a closed one. */
  | 'unreachable'
  /** A newer Sandlot has migrated this file. */
  | 'newer_schema'
  /** The writer did not create or migrate the file in time. */
  | 'not_migrated'
  | 'migration_failed'
  /** The target of a move already contains a Sandlot. */
  | 'not_empty'
  /** A move was begun with other files. */
  | 'other_source'
  /** A living agent keeps files on another engine. */
  | 'other_engine'
  /** Another agent has taken over the session: stop working on it. */
  | 'not_owner'
  /** A stored value has an invalid shape. */
  | 'corrupt'

/**
 * Every failure of a database as a whole. `message` names the file and ends with the next step if
 * known.
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

/** The database as a whole does not work now: the same operation may succeed later. */
export function isOutage(error: unknown): boolean {
  return error instanceof StorageError && (error.code === 'io' || error.code === 'unreachable')
}

/** Codes of PostgreSQL (data, integrity, limits, a trigger), of SQLite, and of Node. */
const REFUSED = /^((22|23|44|54|P0)[0-9A-Z]{3}|SQLITE_(CONSTRAINT|TOOBIG|MISMATCH).*|ERR_STRING_TOO_LONG)$/

/** The database works and refuses this value, now and later. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof StorageError) return false
  // V8's own, for JSON longer than the longest string.
  if (error.message === 'Invalid string length') return true
  // A store throws some of them as the cause of a typed error.
  return (
    ('code' in error && typeof error.code === 'string' && REFUSED.test(error.code)) || isRefusal(error.cause)
  )
}

export function isNotOwner(error: unknown): boolean {
  return error instanceof StorageError && error.code === 'not_owner'
}
