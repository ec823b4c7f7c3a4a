/** Which database it is, where a statement has to know. */
import { type Kysely, SqliteAdapter } from 'kysely'

/** Each store has a schema of its own in PostgreSQL. */
export type StoreName = 'sessions' | 'accounts'

type DialectName = 'sqlite' | 'postgres'

export function dialectOf<Schema>(db: Kysely<Schema>): DialectName {
  return db.getExecutor().adapter instanceof SqliteAdapter ? 'sqlite' : 'postgres'
}

/** Of a store that is given as a path or an address. */
export function isPostgres(where: string): boolean {
  return /^postgres(ql)?:\/\//.test(where)
}

/** Of times that better-auth writes, which are text on both. */
export function timeType(db: Kysely<unknown>): 'date' | 'text' {
  return dialectOf(db) === 'sqlite' ? 'date' : 'text'
}
