import { afterAll, beforeAll, describe } from 'vitest'
import { type Postgres, postgresPrograms, startPostgres } from './postgres.ts'

/**
 * A suite on a PostgreSQL of its own, which runs in its hooks and tests; where this machine has none it says so and is left
 * out.
 */
export function describeOnPostgres(name: string, suite: (postgres: Postgres) => void): void {
  if (postgresPrograms === undefined)
    process.stderr.write(
      `${name}: left out, there is no PostgreSQL on this machine (apt install postgresql)\n`,
    )
  describe.skipIf(postgresPrograms === undefined)(name, () => {
    const postgres = {} as Postgres
    let stop: (() => Promise<void>) | undefined
    beforeAll(async () => {
      ;({ stop } = Object.assign(postgres, await startPostgres(postgresPrograms ?? '')))
    }, 60_000)
    afterAll(() => stop?.())
    suite(postgres)
  })
}
