/**
 * Statements that a file has compiled, kept for the next time: compiling one takes longer than
 * running it.
 */
import type { SqliteFile } from './sqlite-file.ts'

type Statement = ReturnType<SqliteFile['prepare']>

/** How many are kept; the least lately used goes first. */
const MOST_STATEMENTS = 200
/** A longer one writes many rows, and their number is seldom the same again. */
const LONGEST_SQL = 1_000

/** What Kysely needs of `file`. Only for a file whose schema does not change any more. */
export function withStatementCache(file: SqliteFile): {
  prepare: (sql: string) => Statement
  close: () => void
} {
  const kept = new Map<string, Statement>()
  return {
    prepare(sql) {
      const known = kept.get(sql)
      // A statement whose rows are still being read cannot begin again.
      if (known?.busy === true || sql.length > LONGEST_SQL) return file.prepare(sql)
      const statement = known ?? file.prepare(sql)
      kept.delete(sql)
      kept.set(sql, statement)
      const oldest = kept.size > MOST_STATEMENTS ? kept.keys().next().value : undefined
      if (oldest !== undefined) kept.delete(oldest)
      return statement
    },
    close() {
      kept.clear()
      file.close()
    },
  }
}
