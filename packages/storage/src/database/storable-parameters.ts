/** The last door before either database: text of parameters is text that PostgreSQL holds. */
import { storableJson } from '@sandlot/shared/base/storable-text'
import type { CompiledQuery, DatabaseConnection } from 'kysely'

const guarded = new WeakSet<DatabaseConnection>()

/** Every statement of `connection` from now on. The same connection again changes nothing. */
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
