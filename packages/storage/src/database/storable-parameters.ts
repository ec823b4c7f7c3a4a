/** Cleans parameters of statements, for both databases: text that PostgreSQL can store. */
import { storableJson } from '@sandlot/shared/base/storable-text'
import type { CompiledQuery, DatabaseConnection } from 'kysely'

const guarded = new WeakSet<DatabaseConnection>()

/** Applies to all later statements of `connection`. Idempotent. */
export function guardParameters(connection: DatabaseConnection): void {
  if (guarded.has(connection)) return
  guarded.add(connection)
  const execute = connection.executeQuery.bind(connection)
  connection.executeQuery = (query, ...rest) => execute(withStorable(query), ...rest)
  const stream = connection.streamQuery.bind(connection)
  connection.streamQuery = (query, ...rest) => stream(withStorable(query), ...rest)
}

function withStorable(query: CompiledQuery): CompiledQuery {
  const parameters = query.parameters.map((value) =>
    typeof value === 'string' || Array.isArray(value) ? storableJson(value) : value,
  )
  const isAsItWas = parameters.every((value, index) => Object.is(value, query.parameters[index]))
  return isAsItWas ? query : { ...query, parameters }
}
