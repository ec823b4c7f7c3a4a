/** What our connections to PostgreSQL do that Kysely’s do not. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { hasCode } from '@sandlot/shared/base/errors'
import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresDialect,
  type PostgresDialectConfig,
  PostgresDriver,
  type TransactionBuilder,
  type TransactionSettings,
} from 'kysely'
import { guardParameters } from './storable-parameters.ts'

/** Serialization failure, deadlock: of two that cannot both go on, one is undone. */
const REPEATABLE = ['40001', '40P01']

async function twiceAtMost<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!hasCode(error, ...REPEATABLE)) throw error
    return run()
  }
}

/**
 * Transactions are repeated once where the database has undone them for another's sake, so what
 * they run may run twice, the first time undone.
 */
export class RepeatingKysely<Schema> extends Kysely<Schema> {
  override transaction(): TransactionBuilder<Schema> {
    const builder = super.transaction()
    const execute = builder.execute.bind(builder)
    builder.execute = (work) => twiceAtMost(() => execute(work))
    return builder
  }
}

/**
 * `serial`: its transactions come one after the other, over all processes, as they do on a file:
 * what they read (who is the last administrator) stays true until they end.
 */
export class PatientDialect extends PostgresDialect {
  readonly #config: PostgresDialectConfig
  readonly #serial: boolean

  constructor(config: PostgresDialectConfig, serial: boolean) {
    super(config)
    this.#config = config
    this.#serial = serial
  }

  override createDriver(): Driver {
    return new PatientDriver(this.#config, this.#serial)
  }
}

class PatientDriver extends PostgresDriver {
  readonly #serial: boolean
  readonly #inTransaction = new WeakSet<DatabaseConnection>()
  readonly #repeats = new WeakSet<DatabaseConnection>()
  /** Connections are of everybody: they begin in the context of no request. */
  readonly #outside = AsyncLocalStorage.snapshot()

  constructor(config: PostgresDialectConfig, serial: boolean) {
    super(config)
    this.#serial = serial
  }

  /** A statement outside of a transaction is one itself. */
  override async acquireConnection(
    ...options: Parameters<PostgresDriver['acquireConnection']>
  ): Promise<DatabaseConnection> {
    const connection = await this.#outside(() => super.acquireConnection(...options))
    if (this.#repeats.has(connection)) return connection
    this.#repeats.add(connection)
    guardParameters(connection)
    const execute = connection.executeQuery.bind(connection)
    connection.executeQuery = (...query) =>
      this.#inTransaction.has(connection) ? execute(...query) : twiceAtMost(() => execute(...query))
    return connection
  }

  override async beginTransaction(
    connection: DatabaseConnection,
    settings: TransactionSettings,
  ): Promise<void> {
    await super.beginTransaction(connection, settings)
    this.#inTransaction.add(connection)
    if (this.#serial)
      await connection.executeQuery(
        CompiledQuery.raw("select pg_advisory_xact_lock(hashtext('sandlot accounts'))"),
      )
  }

  override async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await super.commitTransaction(connection)
    this.#inTransaction.delete(connection)
  }

  /** Never rejects: a lost connection has undone it, and why it is lost was thrown before. */
  override async rollbackTransaction(
    connection: Parameters<PostgresDriver['rollbackTransaction']>[0],
  ): Promise<void> {
    await Promise.allSettled([super.rollbackTransaction(connection)])
    this.#inTransaction.delete(connection)
  }
}
