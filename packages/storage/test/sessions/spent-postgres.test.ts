/** What people have used up, where the store is PostgreSQL: the same contract, and its migrations. */
import { Migrator } from 'kysely/migration'
import { type Kysely, sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe } from 'vitest'
import { GroupCommit } from '../../src/database/group-commit.ts'
import { type SessionsSchema, sessionsMigrations } from '../../src/sessions/schema.ts'
import { StoreRoom } from '../../src/sessions/store-room.ts'
import type { SessionStore } from '../../src/sessions/store.ts'
import { storedPeople } from '../../src/sessions/people.ts'
import { usageReads } from '../../src/sessions/usage-sums.ts'
import { sessionWrites } from '../../src/sessions/writes.ts'
import { type Postgres, postgresPrograms, startPostgres } from '../support/postgres.ts'
import { testSpent } from '../support/spent-contract.ts'
import { testUsage } from '../support/usage-contract.ts'

if (postgresPrograms === undefined)
  process.stderr.write(
    'spent-postgres: left out, there is no PostgreSQL on this machine (apt install postgresql)\n',
  )

describe.skipIf(postgresPrograms === undefined)('on PostgreSQL', () => {
  let postgres: Postgres
  let db: Kysely<SessionsSchema>
  let store: ReturnType<typeof sessionWrites> & Pick<SessionStore, 'people' | 'usage'>
  beforeAll(async () => {
    postgres = await startPostgres(postgresPrograms ?? '')
    db = postgres.connect()
    const migrator = new Migrator({ db, provider: { getMigrations: async () => sessionsMigrations } })
    const { error } = await migrator.migrateToLatest()
    if (error !== undefined) throw error
    const writes = sessionWrites(db, new GroupCommit(db, () => undefined), new StoreRoom(db, undefined))
    store = { ...writes, people: storedPeople(db), usage: usageReads(db) }
  }, 60_000)
  afterAll(() => postgres?.stop())
  beforeEach(async () => {
    await sql`truncate sessions, usage, runs, people, usage_days, tool_days cascade`.execute(db)
    await store.createSession({ id: 's', userId: 'ann', cwd: '/workspace', mode: 'manual', at: 1 })
  })

  testSpent(() => store)
  testUsage(() => store)
})
