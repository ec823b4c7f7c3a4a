/** SQLite or PostgreSQL: the dialect of a connection or of an address. */
import { type Kysely, SqliteAdapter } from 'kysely'

/** Each store has a schema of its own in PostgreSQL. */
export type StoreName = 'sessions' | 'accounts'

type DialectName = 'sqlite' | 'postgres'

export function dialectOf<Schema>(db: Kysely<Schema>): DialectName {
  return db.getExecutor().adapter instanceof SqliteAdapter ? 'sqlite' : 'postgres'
}

/** `where`: a path or an address. */
export function isPostgres(where: string): boolean {
  return /^postgres(ql)?:\/\//.test(where)
}

/** The type of better-auth's times, which are text on both. */
export function timeType(db: Kysely<unknown>): 'date' | 'text' {
  return dialectOf(db) === 'sqlite' ? 'date' : 'text'
}
