/** Cache of a file's compiled statements: compiling one takes longer than running it. */
import type { SqliteFile } from './sqlite-file.ts'

type Statement = ReturnType<SqliteFile['prepare']>

/** The least recently used is evicted. */
const MOST_STATEMENTS = 200
/** Longer ones write many rows, and the same number rarely repeats. */
const LONGEST_SQL = 1_000

/** Kysely's interface to `file`. Only for a file whose schema no longer changes. */
export function withStatementCache(file: SqliteFile): {
  prepare: (sql: string) => Statement
  close: () => void
} {
  const kept = new Map<string, Statement>()
  return {
    prepare(sql) {
      const known = kept.get(sql)
      // A statement cannot restart while its rows are being read.
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
