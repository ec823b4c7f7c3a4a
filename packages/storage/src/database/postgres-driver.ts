/** Our additions to Kysely’s PostgreSQL connections: repeated transactions and serial ones. */
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

/** Serialization failure, deadlock: one of two conflicting transactions is rolled back. */
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
 * Transactions are repeated once if the database has rolled them back for another's sake, so their
 * work may run twice, the first time rolled back.
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
 * `serial`: its transactions run one after another across all processes, like on a file: their
 * reads (for example the last administrator) stay true until they end.
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
  /** Connections are shared: they begin outside of any request's context. */
  readonly #outside = AsyncLocalStorage.snapshot()

  constructor(config: PostgresDialectConfig, serial: boolean) {
    super(config)
    this.#serial = serial
  }

  /** A statement outside of a transaction is its own transaction. */
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

  /**
   * Never rejects: a lost connection has rolled it back, and the reason of the loss was thrown
   * before.
   */
  override async rollbackTransaction(
    connection: Parameters<PostgresDriver['rollbackTransaction']>[0],
  ): Promise<void> {
    await Promise.allSettled([super.rollbackTransaction(connection)])
    this.#inTransaction.delete(connection)
  }
}
