import { afterAll, beforeAll, describe } from 'vitest'
import { openSessionReader, openSessionStore } from '../../src/sessions/sqlite.ts'
import { testSessionStore } from '../support/contract.ts'
import { type Postgres, postgresPrograms, startPostgres } from '../support/postgres.ts'

if (postgresPrograms === undefined)
  process.stderr.write(
    'postgres: left out, there is no PostgreSQL on this machine (apt install postgresql)\n',
  )

describe.skipIf(postgresPrograms === undefined)('on PostgreSQL', () => {
  let postgres: Postgres
  let made = 0
  beforeAll(async () => {
    postgres = await startPostgres(postgresPrograms ?? '')
    const store = await openSessionStore(await postgres.database('empty'))
    await store.close()
  }, 60_000)
  afterAll(() => postgres?.stop())

  testSessionStore('postgres', async () => {
    const url = await postgres.database(`contract_${++made}`, 'empty')
    const store = await openSessionStore(url)
    const reader = await openSessionReader(url)
    return { store, reader, remove: () => undefined }
  })
})
