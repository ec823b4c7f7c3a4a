/** Which database it is, where a statement has to know. */
import { type Kysely, SqliteAdapter } from 'kysely'

type DialectName = 'sqlite' | 'postgres'

export function dialectOf<Schema>(db: Kysely<Schema>): DialectName {
  return db.getExecutor().adapter instanceof SqliteAdapter ? 'sqlite' : 'postgres'
}

/** Of times that better-auth writes, which are text on both. */
export function timeType(db: Kysely<unknown>): 'date' | 'text' {
  return dialectOf(db) === 'sqlite' ? 'date' : 'text'
}
